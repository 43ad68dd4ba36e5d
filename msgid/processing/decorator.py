"""The decorator that makes a processor of a handler."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from msgid._validate import quote
from msgid.processing._processor import Processor, check_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from msgid.processing._flow import DeadLetter
    from msgid.processing.context import Handler, Output
    from msgid.processing.store import Store


def processor(
    store: Store,
    publish: Callable[[Sequence[Output]], Any] | None = None,
    *,
    name: str | None = None,
    attempts: int = 3,
    dead_letter: Callable[[DeadLetter], Any] | None = None,
    keep_outputs: bool = False,
) -> Callable[[Handler], Processor]:
    """Return a decorator that makes a `Processor` of a handler; `AsyncProcessor` takes coroutines.

    Args:
        store: Store of the states.
        publish: Function that sends outputs; see `Processor`. Without it, `Processor.handle` raises TypeError for a
            message whose handler publishes.
        name: Name of the handler, under which its states are stored; see `Processor`.
        attempts: Maximum number of attempts if the handler raises an error.
        dead_letter: Function that receives a `DeadLetter` for each message that cannot be handled.
        keep_outputs: Whether outputs are stored; see `Processor`.

    Returns:
        The decorator. The processor has the docstring of the handler, and the handler itself as ``__wrapped__``.

    Raises:
        TypeError: if ``store`` is not a store: ``@processor`` needs its arguments. The decorator raises the errors of
            `Processor`.

    >>> from msgid.processing import MemoryStore, Message
    >>> @processor(MemoryStore())
    ... def total(state, message, context):
    ...     return (state or 0) + message.body
    >>> five = Message("0156F7E71C361B21BC024CCDBE00000000", "customer 7", 5)
    >>> [total.handle(message).state for message in (five, five, Message("order 2", "customer 7", 1))]
    [5, 5, 6]
    """
    check_store(store)

    def decorate(handler: Handler) -> Processor:
        made = Processor(
            store,
            handler,
            _no_publish if publish is None else publish,
            name=name,
            attempts=attempts,
            dead_letter=dead_letter,
            keep_outputs=keep_outputs,
        )
        functools.update_wrapper(made, handler)  # type: ignore[arg-type]
        return made

    return decorate


def _no_publish(outputs: Sequence[Output]) -> None:
    raise TypeError(f"publish must be given to @processor, because the handler has published: {quote(outputs[0])}")
