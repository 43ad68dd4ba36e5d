"""The processor for coroutines: handlers and publishers that wait for other services."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from msgid.processing._flow import AppendAll, Publish, Read, Run, Settle, Wait, finished
from msgid.processing._processor import BATCH, BaseProcessor, batches_of
from msgid.processing.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from msgid._message import Message
    from msgid.processing._flow import Action, Outcome, Ran


class AsyncProcessor(BaseProcessor["Callable[..., Any]", "Callable[..., Any]", "Callable[..., Any]"]):
    """Handles messages as `Processor` does, with coroutines.

    The handler, the publisher and the dead-letter output can each be a coroutine function or a plain function. The
    store runs in threads, so it does not block the event loop. Any number of messages can be handled concurrently. If
    two tasks work on one key, the first one to store its state wins, and the other runs its handler again.

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
        return self._finished((await self._drive([message]))[0])

    async def handle_many(self, messages: Iterable[Message], *, batch: int = BATCH) -> list[Outcome]:
        """Handle messages with one transaction per batch, one handler call at a time; see `Processor.handle_many`."""
        outcomes: list[Outcome] = []
        for chunk in batches_of(messages, batch):
            outcomes += await self._drive(chunk)
        return self._all_finished(outcomes)

    async def _drive(self, messages: Sequence[Message]) -> list[Outcome]:
        flow, result = self._batch(messages), None
        while True:
            try:
                action = flow.send(result)
            except StopIteration as done:
                outcomes: list[Outcome] = done.value
                return outcomes
            result = await self._do(action)

    async def _do(self, action: Action) -> Any:
        match action:
            case Run():
                return await self._run(action)
            case Wait(seconds):
                return await asyncio.sleep(seconds)
            case Read(wanted):
                return await self._stored(self._store.read, wanted)
            case AppendAll(appends, writer):
                return await self._stored(self._store.append, appends, writer)
            case Publish(outputs):
                return await _awaited("publish", self._publish(outputs))
            case Settle(message, outcome, seconds):
                if outcome.error is not None and self._dead_letter is not None:
                    await _awaited("dead_letter", self._dead_letter(self._letter(message, outcome)))
                return self._observed(message, outcome, seconds)

    async def _run(self, action: Run) -> Ran | Exception:
        try:
            state, message, context = self._before(action)
            return self._ran(await _awaited("handler", self._handler(state, message, context)), context)
        except Exception as error:
            return error

    async def _stored(self, call: Callable[..., Any], *arguments: Any) -> Any:
        if isinstance(self._store, MemoryStore):  # faster than a thread
            return call(self.name, *arguments)
        return await asyncio.to_thread(call, self.name, *arguments)


async def _awaited(what: str, result: Any) -> Any:
    return finished(what, await result if inspect.isawaitable(result) else result)
