"""The world of processors: workers that share a store, messages that come late, twice and in any order, and crashes.

A worker runs `Processor.steps`, one step per operation, so that every step of one worker can fall between any two steps
of another. A worker that crashes loses its work, and the queue delivers its message again.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgid
from msgid.processing import BatchFailed, ChangedOutputs, MemoryStore, Message, Processor, SqliteStore, TooLate, loads
from simulation.scheduler import Operation, Violation

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from msgid.processing import Output
    from simulation.scheduler import Scheduler

KEYS = ("red", "green")
MESSAGES = 8
MOST_STEPS = 5000
RETENTION = timedelta(days=400)
REMEMBER = timedelta(days=400)


def remember_all(state: Any, message: Message, context: Any) -> Any:
    """Add the message to the state, and publish the state on which it ran: a second run on another state shows."""
    state = [*(state or []), message.body]
    context.publish({"seen": state, "id": str(context.new_id()), "luck": context.random.random()})
    if len(state) % 3 == 0:
        context.publish({"third": state[-3:]})
    return state


class StoreFailed(Exception):
    """Raised by a simulated store, before or after it has done its work."""


class PublisherFailed(Exception):
    """Raised by a simulated publisher, before or after it has sent the outputs."""


EXPECTED = (StoreFailed, PublisherFailed)


class FaultyStore:
    """A store whose connection can break before a call, or after the call has been carried out."""

    def __init__(self, store: Any, scheduler: Scheduler) -> None:
        self._store, self._scheduler = store, scheduler

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def carry_out(*arguments: Any, **named: Any) -> Any:
            if self._scheduler.fault(0.03):
                raise StoreFailed(f"before {name}")
            result = call(*arguments, **named)
            if self._scheduler.fault(0.03):
                raise StoreFailed(f"after {name}")
            return result

        return carry_out


class Worker:
    """A process with a store object of its own, and the message on which it works."""

    def __init__(self, number: int, processor: Processor) -> None:
        self.number = number
        self.processor = processor
        self.message: Message | None = None
        self.steps: Generator[str, None, Any] | None = None


class Processors:
    """Workers, a queue that delivers each message at least once, and what the workers have published."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.folder = Path(tempfile.mkdtemp(prefix="msgid-"))
        self.memory = MemoryStore(remember=REMEMBER) if scheduler.chance(0.5) else None
        self.keep_outputs = scheduler.chance(0.5)
        self.stores: list[Any] = []
        self.published: dict[str, Output] = {}
        """The first output of each output ID."""
        self.fresh: list[Output] = []
        self.messages = {}
        for number in range(MESSAGES):
            id = str(msgid.position_id("log", number, 1_700_000_000 + number)) if number % 3 else f"order {number}"
            self.messages[id] = Message(id, KEYS[number % len(KEYS)], number)
        self.queue = [*self.messages] * 2
        scheduler.random.shuffle(self.queue)
        self.done: set[str] = set()
        self.forgot = False
        self.workers = [Worker(number, self._processor()) for number in range(3)]

    def operations(self) -> Sequence[Operation]:
        """Return the operations that are possible now."""
        found = [Operation(2, "move the clock", self.scheduler.move_clock)]
        for worker in self.workers:
            if worker.steps is not None:
                found.append(Operation(6, f"worker {worker.number} goes on", lambda worker=worker: self._step(worker)))
                found.append(Operation(1, f"worker {worker.number} crashes", lambda worker=worker: self._crash(worker)))
            elif self.queue:
                found.append(
                    Operation(6, f"worker {worker.number} receives", lambda worker=worker: self._receive(worker))
                )
        if self.done:
            found.append(Operation(2, "redelivery", self._redeliver))
            found.append(Operation(1, "batch", self._batch))
        found.append(Operation(1, "forget", self._forget))
        return found

    def check(self) -> None:
        """An output ID has one content for ever, and names its input."""
        for output in self.fresh:
            first = self.published.setdefault(output.id, output)
            if first != output:
                raise Violation(f"{first} was published before, and now {output}")
        self.fresh = []
        for key in KEYS:
            for name, words in self._histories(key):
                if len(set(words)) != len(words):
                    raise Violation(f"a message changed the state of {key} twice ({name}): {words}")

    def finish(self) -> None:
        """Each message is handled once, its outputs are published, and the outputs follow from one order of states."""
        for _ in range(MOST_STEPS):
            for worker in self.workers:
                if worker.steps is not None:
                    self._step(worker)
                elif self.queue:
                    self._receive(worker)
            self.check()
            if not self.queue and all(worker.steps is None for worker in self.workers):
                break
        else:
            raise Violation(f"no end after {MOST_STEPS} more steps of each worker")
        if self.done != set(self.messages):
            raise Violation(f"never handled: {set(self.messages) - self.done}")
        for key in KEYS:
            expected = sorted(message.body for message in self.messages.values() if message.key == key)
            [state] = {tuple(words) for _, words in self._histories(key)}
            if sorted(state) != expected:
                raise Violation(f"the state of {key} must have {expected} once each, got {state}")
            seen = [output.body["seen"] for output in self.published.values() if "seen" in output.body]
            for length in range(1, len(state) + 1):
                if list(state[:length]) not in seen:
                    raise Violation(f"no output follows from {state[:length]}: lost, or made on another state")

    def close(self) -> None:
        """Close the stores and delete their files."""
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder)

    def _processor(self) -> Processor:
        store = self.memory
        if store is None:
            store = SqliteStore(self.folder / "states.db", remember=REMEMBER, deltas=self.scheduler.random.randrange(3))
            self.stores.append(store)
        return Processor(
            FaultyStore(store, self.scheduler),
            remember_all,
            self._publish,
            name="remember",
            keep_outputs=self.keep_outputs,
            clock=lambda: self.scheduler.now * 1000,
        )

    def _publish(self, outputs: Sequence[Output]) -> None:
        if self.scheduler.fault(0.05):
            raise PublisherFailed("before")
        self.fresh.extend(outputs)
        if self.scheduler.fault(0.05):
            raise PublisherFailed("after")

    def _receive(self, worker: Worker) -> None:
        worker.message = self.messages[self.queue.pop(self.scheduler.random.randrange(len(self.queue)))]
        worker.steps = worker.processor.steps(worker.message)
        self.scheduler.note(f"  {worker.message.id}")

    def _step(self, worker: Worker) -> None:
        assert worker.steps is not None
        assert worker.message is not None
        try:
            self.scheduler.note(f"  {next(worker.steps)}")
        except StopIteration as done:
            self.scheduler.note(f"  {done.value.kind}")
            self.done.add(worker.message.id)
            worker.steps = None
        except EXPECTED as error:
            self.scheduler.note(f"  {type(error).__name__} {error}")
            self.queue.append(worker.message.id)  # not acknowledged
            worker.steps = None
        except (TooLate, ChangedOutputs) as error:
            self._must_be_allowed(error, worker.message)
            worker.steps = None

    def _must_be_allowed(self, error: Exception, message: Message) -> None:
        if isinstance(error, ChangedOutputs) or not self.forgot:
            raise error
        self.done.add(message.id)

    def _crash(self, worker: Worker) -> None:
        assert worker.message is not None
        if not self.scheduler.faulty:
            return
        assert worker.steps is not None
        worker.steps.close()
        worker.steps = None
        self.queue.append(worker.message.id)
        worker.processor = self._processor()

    def _redeliver(self) -> None:
        self.queue.append(self.scheduler.random.choice(sorted(self.done)))

    def _batch(self) -> None:
        ids = [self.scheduler.random.choice(sorted(self.messages)) for _ in range(self.scheduler.random.randrange(5))]
        worker = self.scheduler.random.choice(self.workers)
        try:
            worker.processor.handle_many([self.messages[id] for id in ids], batch=2)
            self.done.update(ids)
        except EXPECTED as error:
            self.scheduler.note(f"  {type(error).__name__} {error}")
            self.queue.extend(ids)
        except BatchFailed as failed:
            for id, outcome in zip(ids, failed.outcomes, strict=True):
                if outcome.error is not None:
                    self._must_be_allowed(outcome.error, self.messages[id])

    def _forget(self) -> None:
        # With limited faults, entries are kept for longer than the queue delivers a message again.
        age = (
            RETENTION if self.scheduler.mode == "limited" else timedelta(days=self.scheduler.random.choice([0, 1, 400]))
        )
        try:
            deleted = self.scheduler.random.choice(self.workers).processor.forget(older_than=age)
        except EXPECTED:
            deleted = 1
        self.forgot |= bool(deleted)

    def _histories(self, key: str) -> list[tuple[str, list[int]]]:
        stores = [self.memory] if self.memory is not None else self.stores[:1]
        return [
            (type(store).__name__, loads(versions[-1].state))
            for store in stores
            if (versions := store.history(key, handler="remember")) and versions[-1].state is not None
        ]
