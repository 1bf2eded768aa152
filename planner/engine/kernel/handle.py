"""How the kernel holds its arrays: one address, behind which lie the places of all of them.

Passed by value, sixty arrays are four hundred numbers in every call: that took three minutes to
compile. So Numba is taught two types that are a pointer each. A handle points to a table of the
address, length and width of each array of `State`; `s.jobs` is a line of that table, and
`s.jobs[job]` an element. The arrays carry no reference count, for the handle keeps them alive.

Unlike Numba's arrays these do not ask of each index whether it is negative: none may be. That
question took a fifth of the time of a run.
"""

from __future__ import annotations

import operator
from typing import Any, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import from_dtype

from planner.engine.kernel.layout import State

_HINTS = get_type_hints(State, include_extras=True)
# By name: place in the table, NumPy's type of an element, number of dimensions.
_ARRAYS = {name: (place, *_HINTS[name].__metadata__) for place, name in enumerate(State._fields)}
_COLUMNS = 3  # address, length, width
_WORD = ir.IntType(64)


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


class RowsType(types.Type):
    """Numba's side of one array behind a handle."""

    def __init__(self, element: Any, ndim: int) -> None:
        self.element, self.ndim = element, ndim
        index = types.int64
        self.index = index if ndim == 1 else types.UniTuple(index, ndim)
        super().__init__(name=f"Sekisho.Rows({element}, {ndim})")


_HANDLE = HandleType()
_ROWS = {name: RowsType(from_dtype(dtype), ndim) for name, (_, dtype, ndim) in _ARRAYS.items()}


@typeof_impl.register(Handle)
def _typeof(_value: Any, _context: Any) -> HandleType:
    return _HANDLE


@register_model(HandleType)
@register_model(RowsType)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD)


@unbox(HandleType)
def _unbox(_kind: Any, value: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(value, "at")
    native = context.pyapi.long_as_longlong(address)
    context.pyapi.decref(address)
    return NativeValue(native)


# --- What the kernel may ask of them --------------------------------------------------------------


@infer_getattr
class _HandleAttributes(AttributeTemplate):
    key = HandleType

    def generic_resolve(self, _kind: Any, name: str) -> Any:  # type: ignore[override]
        return _ROWS.get(name)


@infer_getattr
class _RowsAttributes(AttributeTemplate):
    key = RowsType

    def resolve_size(self, _kind: Any) -> Any:
        return types.int64


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, _names: Any) -> Any:
        rows, _ = args
        if isinstance(rows, RowsType):
            return signature(rows.element, rows, rows.index)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, _names: Any) -> Any:
        rows, *_ = args
        if isinstance(rows, RowsType):
            return signature(types.none, rows, rows.index, rows.element)
        return None


# --- How that is done -----------------------------------------------------------------------------


def _look_up(builder: Any, line: Any, column: int) -> Any:
    table = builder.inttoptr(line, _WORD.as_pointer())
    found = builder.load(builder.gep(table, [ir.Constant(_WORD, column)]))
    # The table does not change during a run, so one look into it serves many accesses.
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


def _element(context: Any, builder: Any, kind: RowsType, line: Any, index: Any) -> Any:
    """Return a pointer to an element."""
    if kind.ndim > 1:
        row, column = (builder.extract_value(index, axis) for axis in range(2))
        index = builder.add(builder.mul(row, _look_up(builder, line, 2)), column)
    pointer = context.get_data_type(kind.element).as_pointer()
    if isinstance(kind.element, types.Record):
        width = ir.Constant(_WORD, kind.element.size)
        at = builder.add(_look_up(builder, line, 0), builder.mul(index, width))
        return builder.inttoptr(at, pointer)
    return builder.gep(builder.inttoptr(_look_up(builder, line, 0), pointer), [index])


@lower_getattr_generic(HandleType)
def _rows(_context: Any, builder: Any, _kind: Any, value: Any, name: str) -> Any:
    place, *_ = _ARRAYS[name]
    return builder.add(value, ir.Constant(_WORD, place * _COLUMNS * _WORD.width // 8))


@lower_getattr(RowsType, "size")
def _size(_context: Any, builder: Any, _kind: Any, line: Any) -> Any:
    return _look_up(builder, line, 1)


@lower_builtin(operator.getitem, RowsType, types.Any)
def _get(context: Any, builder: Any, called: Any, args: Any) -> Any:
    kind, _ = called.args
    at = _element(context, builder, kind, *args)
    return context.unpack_value(builder, kind.element, at)


@lower_builtin(operator.setitem, RowsType, types.Any, types.Any)
def _set(context: Any, builder: Any, called: Any, args: Any) -> Any:
    kind, *_ = called.args
    line, index, value = args
    at = _element(context, builder, kind, line, index)
    context.pack_value(builder, kind.element, value, at)
    return context.get_dummy_value()
