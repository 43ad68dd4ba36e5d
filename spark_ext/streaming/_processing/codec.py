"""One run of a handler, and rows as text."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from msgid.processing._json import text
from msgid.processing.context import Context

if TYPE_CHECKING:
    import asyncio

    from msgid._message import Message
    from msgid.processing.context import AsyncHandler, Handler, Output


def input_text(body: dict[str, Any]) -> str:
    """Return the columns of a row as JSON; a value that JSON cannot hold becomes its text."""
    try:
        return text(body)
    except (TypeError, ValueError, RecursionError):
        return text({name: _or_text(value) for name, value in body.items()})


def _or_text(value: Any) -> Any:
    try:
        text(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)
    return value


_STATES: Final = frozenset({type(None), bool, int, float, str, dict, list})
"""Types of most states: the check for an awaitable value takes longer."""


class Runner:
    """Runs a handler, which may be a coroutine function."""

    def __init__(self, handler: Handler | AsyncHandler) -> None:
        self._handler = handler
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, state: Any, message: Message) -> tuple[Any, list[Output]]:
        """Run the handler once on its own copies of a state and a message."""
        context = Context(message)
        after = self._handler(state, message, context)
        if type(after) not in _STATES and inspect.isawaitable(after):
            import asyncio

            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            after = self._loop.run_until_complete(_wait(after))
        return after, context.outputs

    def close(self) -> None:
        """Close the event loop."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None


async def _wait(result: Any) -> Any:
    return await result
