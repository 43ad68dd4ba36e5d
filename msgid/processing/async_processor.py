"""The processor for coroutines: handlers and publishers that wait for other services."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from msgid.processing.flow import AppendAll, Publish, Read, RunHandler, Settle, Wait, finished, next_action
from msgid.processing.memory import MemoryStore
from msgid.processing.processor import BATCH, BaseProcessor, batches_of
from msgid.shared.handler_message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextvars import Token

    from msgid.processing.flow import Action, Outcome

_AT_WORK: Final[ContextVar[tuple[object, ...]]] = ContextVar("msgid_at_work", default=())
"""The processors that handle messages in this task, or in the task that created it."""


class AsyncProcessor(BaseProcessor):
    """Handles messages as `Processor` does, with coroutines.

    The handler, the publisher and the dead-letter output can each be a coroutine function or a plain function. The
    store runs in threads, so it does not block the event loop. Any number of messages can be handled concurrently.

    The tasks of one event loop wait for each other if they have messages of one key, and are handled in the order of
    their calls. A call inside a handler or a publisher of the same processor does not wait. If another processor, loop
    or process works on the key, the first one to store its state wins, and the other runs its handler again.

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

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._last: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Future[None]]] = WeakKeyDictionary()
        """The end of the last call for each key, by event loop."""

    async def handle(self, message: Message) -> Outcome:
        """Handle a message once; see `Processor.handle`."""
        async with _Turn(self, [message]):
            return self._finished((await self._driven([message], {}))[0])

    async def handle_many(self, messages: Iterable[Message], *, batch: int = BATCH) -> list[Outcome]:
        """Handle messages with one transaction per batch, one handler call at a time; see `Processor.handle_many`."""
        outcomes: list[Outcome] = []
        stopped: dict[str, BaseException] = {}
        for chunk in batches_of(messages, batch):
            async with _Turn(self, chunk):
                outcomes += await self._driven(chunk, stopped)
        return self._all_finished(outcomes)

    async def _driven(self, messages: Sequence[Message], stopped: dict[str, BaseException]) -> list[Outcome]:
        steps = self._batch(messages, stopped)
        action = next_action(steps)
        while not isinstance(action, list):
            action = next_action(steps, await self._do(action))
        return action

    async def _do(self, action: Action) -> Any:
        match action:
            case RunHandler():
                try:
                    state, message, context = self._before(action)
                    return self._ran(await _called("handler", self._handler(state, message, context)), context)
                except Exception as error:
                    return error
            case Wait(seconds):
                return await asyncio.sleep(seconds)
            case Read(wanted):
                return await self._stored(self._store.read, wanted)
            case AppendAll(appends, writer):
                return await self._stored(self._store.append, appends, writer)
            case Publish(outputs):
                return await _called("publish", self._publish(outputs))
            case Settle(message, outcome, seconds):
                letter = self._letter(message, outcome)
                if letter is not None and self._dead_letter is not None:
                    await _called("dead_letter", self._dead_letter(letter))
                return self._observed(message, outcome, seconds)

    async def _stored(self, call: Callable[..., Any], *arguments: Any) -> Any:
        if isinstance(self._store, MemoryStore):  # faster than a thread
            return call(self.name, *arguments)
        return await asyncio.to_thread(call, self.name, *arguments)


async def _called(what: str, result: Any) -> Any:
    return finished(what, await result if inspect.isawaitable(result) else result)


class _Turn:
    """The turn of a call, behind all earlier calls in its event loop with messages of the same keys.

    A call takes its place behind all of them at once, so no two calls wait for each other. This is not a generator,
    because Python does not end a generator of a task that its loop has left behind.
    """

    def __init__(self, processor: AsyncProcessor, messages: Sequence[Message]) -> None:
        self._processor = processor
        self._keys = {message.key for message in messages if isinstance(message, Message)}
        self._token: Token[tuple[object, ...]] | None = None

    async def __aenter__(self) -> None:
        outer = _AT_WORK.get()
        if self._processor in outer:  # its caller waits for it, so it must not wait for its caller
            return
        self._loop = asyncio.get_running_loop()
        self._last = self._processor._last.setdefault(self._loop, {})
        self._end = self._loop.create_future()
        self._earlier = {self._last[key] for key in self._keys if key in self._last}
        self._last.update(dict.fromkeys(self._keys, self._end))
        self._token = _AT_WORK.set((*outer, self._processor))
        if self._earlier:
            try:
                await asyncio.wait(self._earlier)
            except BaseException:
                self._exit()
                raise

    async def __aexit__(self, *_: object) -> None:
        self._exit()

    def _exit(self) -> None:
        if self._token is None:
            return
        waiting = [one for one in self._earlier if not one.done()]
        if waiting and not self._loop.is_closed():  # cancelled: the calls after it wait for the same ones
            asyncio.gather(*waiting).add_done_callback(self._leave)
        else:
            self._leave()
        with suppress(ValueError):  # a task that its loop has left behind ends in another context
            _AT_WORK.reset(self._token)

    def _leave(self, *_: object) -> None:
        if not self._loop.is_closed():
            self._end.set_result(None)
        for key in self._keys:
            if self._last.get(key) is self._end:
                del self._last[key]
