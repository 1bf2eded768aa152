"""The addresses of requests."""

from django.urls import path

from portal.requests import views

app_name = "requests"
urlpatterns = [
    path("", views.index, name="index"),
    path("new/", views.draft, name="draft"),
    path("new/effect/", views.effect, name="effect"),
    path("new/submit/", views.submit, name="submit"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/edit/", views.edit, name="edit"),
    path("<int:pk>/simulate/", views.simulate, name="simulate"),
    path("<int:pk>/comment/", views.comment, name="comment"),
    path("<int:pk>/decide/", views.decide, name="decide"),
    path("<int:pk>/withdraw/", views.withdraw, name="withdraw"),
    path("<int:pk>/undo/", views.undo, name="undo"),
    path("<int:pk>/revoke/", views.revoke, name="revoke"),
]
