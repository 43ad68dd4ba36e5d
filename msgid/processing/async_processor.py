"""The processor for coroutines: handlers and publishers that wait for other services."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from msgid.processing._flow import finished
from msgid.processing._processor import BATCH, BaseProcessor, batches_of
from msgid.processing.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from msgid._message import Message
    from msgid.processing._flow import Outcome


class AsyncProcessor(BaseProcessor):
    """Handles messages as `Processor` does, with coroutines.

    The handler, the publisher and the dead-letter output can each be a coroutine function or a plain function. The
    store runs in threads, so it does not block the event loop. Any number of messages can be handled concurrently. If
    two tasks work on one key, the first one to store its state wins, and the other runs its handler again: 200 tasks of
    one key run it up to 20,100 times, and one call of `handle_many` 200 times.

    A cancelled task has the effect of a crash: the message must be delivered again. So has any `asyncio.CancelledError`
    in the handler.

    >>> async def count(state, message, context):
    ...     context.publish({"number": (state or 0) + 1})
    ...     return (state or 0) + 1
    >>> from msgid.processing import Message
    >>> processor = AsyncProcessor(MemoryStore(), count, list)
    >>> asyncio.run(processor.handle(Message("orders-0-42", "key", None))).state
    1
    """

    _awaits = True

    async def handle(self, message: Message) -> Outcome:
        """Handle a message once; see `Processor.handle`."""
        return self._finished((await self._driven([message]))[0])

    async def handle_many(self, messages: Iterable[Message], *, batch: int = BATCH) -> list[Outcome]:
        """Handle messages with one transaction per batch, one handler call at a time; see `Processor.handle_many`."""
        outcomes: list[Outcome] = []
        for chunk in batches_of(messages, batch):
            outcomes += await self._driven(chunk)
        return self._all_finished(outcomes)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _stored(self, call: Callable[..., Any], *arguments: Any) -> Any:
        if isinstance(self._store, MemoryStore):  # faster than a thread
            return call(self.name, *arguments)
        return await asyncio.to_thread(call, self.name, *arguments)

    async def _called(self, what: str, result: Any) -> Any:
        return finished(what, await result if inspect.isawaitable(result) else result)
