# The one image of Sekisho: web server, workers and beat differ only in their command.

FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /app
# The dependencies first: they change less often than the code. The project itself is no package.
COPY pyproject.toml constraints.txt CHANGELOG.md README.md ./
COPY portal/version.py portal/__init__.py ./portal/
RUN pip install --constraint constraints.txt .
COPY . .
# Static files need no step: WhiteNoise finds them in the code and in the installed packages.
RUN pybabel compile --directory portal/locale --domain django
# The engine is compiled here, for any processor of the kind, so that no container has to.
ENV NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/app/var/engine
RUN python -m planner warm

FROM python:3.11-slim
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/app/var/engine \
    SEKISHO_DATA_DIR=/data
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin sekisho \
    && install -d -o sekisho -g sekisho /data
COPY --from=build /opt/venv /opt/venv
COPY --from=build --chown=root:root /app /app
WORKDIR /app
USER sekisho
VOLUME /data
EXPOSE 8000
# Asks by the first name that the site answers to: another Host would be refused.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(u.Request('http://127.0.0.1:8000/healthz', headers={'Host': os.environ.get('SEKISHO_ALLOWED_HOSTS', '127.0.0.1').split(',')[0]}), timeout=4)"]
CMD ["gunicorn", "portal.wsgi", "--bind=0.0.0.0:8000", "--workers=2", "--threads=4", "--worker-tmp-dir=/dev/shm", "--no-control-socket", "--access-logfile=-"]
