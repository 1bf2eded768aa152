"""How the kernel holds its arrays: one address, behind which lie the places of all of them.

Passed by value, sixty arrays are four hundred numbers in every call: that took three minutes to
compile. So Numba is taught a type that is a single pointer, to a table of address, length and
width of each array of `State`; `s.jobs` in the kernel is a look into that table. The arrays carry
no reference count, for the handle keeps them alive.
"""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from planner.engine.kernel.layout import State

_HINTS = get_type_hints(State, include_extras=True)
# By name: place in the table, NumPy's type of an element, number of dimensions.
_ARRAYS = {name: (place, *_HINTS[name].__metadata__) for place, name in enumerate(State._fields)}
_COLUMNS = 3  # address, length, width


class Handle:
    """A state as the kernel takes it."""

    def __init__(self, state: State) -> None:
        self.state = state  # kept alive
        self.table = np.zeros(len(_ARRAYS) * _COLUMNS, np.int64)
        for name, (place, dtype, ndim) in _ARRAYS.items():
            array = getattr(state, name)
            if array.dtype != dtype or array.ndim != ndim or not array.flags.c_contiguous:
                raise TypeError(f"{name}: expected {ndim} dimension(s) of {dtype}")
            self.table[place * _COLUMNS] = array.ctypes.data
            self.table[place * _COLUMNS + 1 : place * _COLUMNS + 1 + ndim] = array.shape
        self.at = int(self.table.ctypes.data)


def handle(state: State) -> Any:
    """Return what the kernel takes: a handle, or with JIT switched off the records themselves."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return state._replace(
            **{
                name: getattr(state, name).view(np.recarray)
                for name, (_, dtype, _) in _ARRAYS.items()
                if dtype.names
            }
        )
    return Handle(state)


class HandleType(types.Type):
    """Numba's side of a handle."""

    def __init__(self) -> None:
        super().__init__(name="Sekisho.Handle")


_HANDLE = HandleType()


@typeof_impl.register(Handle)
def _typeof(_value: Any, _context: Any) -> HandleType:
    return _HANDLE


@register_model(HandleType)
class _HandleModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64))


@unbox(HandleType)
def _unbox(_kind: Any, value: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(value, "at")
    native = context.pyapi.long_as_longlong(address)
    context.pyapi.decref(address)
    return NativeValue(native)


@infer_getattr
class _HandleAttributes(AttributeTemplate):
    key = HandleType

    def generic_resolve(self, _kind: Any, name: str) -> Any:  # type: ignore[override]
        if name not in _ARRAYS:
            return None
        _, dtype, ndim = _ARRAYS[name]
        return types.Array(from_dtype(dtype), ndim, "C")


@lower_getattr_generic(HandleType)
def _array(context: Any, builder: Any, _kind: Any, value: Any, name: str) -> Any:
    place, dtype, ndim = _ARRAYS[name]
    kind = types.Array(from_dtype(dtype), ndim, "C")
    word = ir.IntType(64)
    table = builder.inttoptr(value, word.as_pointer())

    def column(number: int) -> Any:
        at = ir.Constant(word, place * _COLUMNS + number)
        found = builder.load(builder.gep(table, [at]))
        # The table does not change during a run, so one look into it serves many accesses.
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    array = make_array(kind)(context, builder)
    shape = [column(1 + axis) for axis in range(ndim)]
    itemsize = ir.Constant(word, dtype.itemsize)
    strides = [itemsize] if ndim == 1 else [builder.mul(shape[1], itemsize), itemsize]
    data = builder.inttoptr(column(0), array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return impl_ret_borrowed(context, builder, kind, array._getvalue())  # noqa: SLF001 - Numba's API
