"""Run consumers in a simulated world of faults, and judge the states: one change per message, in order.

    PYTHONPATH=tests python -m simulation.processing --runs 10000

A schedule is a seed. The processors and their stores are the real code. The event loop has a clock of its own, which
jumps to the next step, so a schedule depends on its seed alone. Messages are repeated and come out of order. Handlers,
publishers and stores fail, and answers are lost. Workers are killed or live on after a rebalance, and start again with
another version of the handler. Sessions vanish with their locks, and wall clocks jump. A query writes batches to a
table: it is killed at any step, and older checkpoints are restored.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import selectors
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from msgid.processing import AsyncProcessor, BatchFailed, MemoryStore, Message, SqliteStore, loads
from msgid.shared import postgres_limits

KINDS = ("workers", "tasks", "letters", "tables")
"""Workers of partitions; tasks of one processor without faults; workers with dead letters and clean-up; a query."""
_START_NS = 1_700_000_000 * 10**9
_END = 3600
"""Simulated seconds after which a schedule has hung."""


class Broken(Exception):
    """A fault that a judge has seen."""


class Fault(ConnectionError):
    """An injected fault."""


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: the clock jumps to the next step."""

    loop = None

    def select(self, timeout=None):
        if timeout is None:
            raise Broken("all tasks wait for each other")
        self.loop.now += max(timeout, 0)
        if self.loop.now > _END:
            raise Broken(f"no end within {_END} simulated seconds")
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """An event loop with a simulated clock."""

    def __init__(self):
        self.now = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.now


class Server:
    """The store behind a network, whose sessions lock the keys that they append to, as PostgreSQL's do."""

    def __init__(self, world, store):
        self.world, self.store, self.locked = world, store, {}

    async def call(self, function, *arguments):
        """Call a method of the store; the call fails, its answer is lost, or its session vanishes with its locks."""
        world, fault = self.world, self.world.fault("refused", "lost", "vanished")
        await world.step()
        if fault == "refused":
            raise Fault("the store refuses the connection")
        keys = sorted({one.key for one in arguments[1]}) if function.__name__ == "append" else []
        for key in keys:
            waited = 0
            while world.loop.now < self.locked.get(key, 0):
                await asyncio.sleep(1)
                waited += 1
                if waited > postgres_limits.LOCK_TIMEOUT:
                    raise Broken(f"the lock of {key} is held for longer than a worker waits")
        if keys and fault == "vanished":  # its machine is gone between two statements: nothing is stored
            self.locked.update(dict.fromkeys(keys, world.loop.now + world.idle_timeout))
            raise Fault("the session vanished")
        result = function(*arguments)
        if fault == "lost":
            raise Fault("the answer is lost")
        await world.step()
        return result


class SimulatedProcessor(AsyncProcessor):
    """A processor whose store, publisher and waits are steps of a simulated world."""

    world = None

    async def _sleep(self, seconds):
        await asyncio.sleep(seconds)

    async def _stored(self, call, *arguments):
        return await self.world.server.call(call, self.name, *arguments)


class World:
    """One schedule."""

    def __init__(self, seed, kind, folder=None, address=None):
        self.chance, self.kind, self.loop = random.Random(f"{kind} {seed}"), kind, Loop()
        self.faulty, self.jump = kind != "tasks", 0
        self.keep_outputs = self.chance.random() < 0.5
        self.idle_timeout = postgres_limits.IDLE_TIMEOUT
        if address is not None:
            store = _postgres_store(address)
        elif folder is not None and seed % 10 == 0:
            store = SqliteStore(Path(folder) / f"{kind} {seed}.db")
            store._connection().execute("PRAGMA synchronous = OFF")
        else:
            store = MemoryStore()
        self.server = Server(self, store)
        self.runs, self.faults, self.bodies, self.letters, self.cancelled = Counter(), Counter(), {}, [], 0
        self.keys = [f"key {number}" for number in range(self.chance.choice([1, 2, 4]))]
        self.failing = {}
        """The number of runs that fail by message."""
        self.topic = self._topic()
        self.committed = 0
        self.owner = None

    def _topic(self):
        """Return the messages of a partition, with repeated ones, also out of order."""
        messages = [
            Message(f"id {n}", self.chance.choice(self.keys), {"n": n}) for n in range(self.chance.randrange(4, 14))
        ]
        topic = list(messages)
        for _ in range(self.chance.randrange(4)):
            place = self.chance.randrange(len(topic))
            topic.insert(self.chance.randrange(place, len(topic) + 1), topic[place])
        if self.faulty:
            for message in self.chance.sample(messages, self.chance.randrange(3)):
                self.failing[message.id] = self.chance.randrange(1, 4)
        return topic

    def fault(self, *kinds):
        """Return one of the faults, or None in most cases."""
        if not self.faulty or self.chance.random() > 0.08:
            return None
        kind = self.chance.choice(kinds)
        self.faults[kind] += 1
        return kind

    async def step(self):
        """Let other tasks run for a while."""
        await asyncio.sleep(self.chance.choice([0, 0.001, 0.01, 0.1]))

    def wall_clock(self):
        return _START_NS + int(self.loop.now * 10**9) + self.jump

    def processor(self):
        """Return the processor of a process that has just started."""
        version = self.chance.randrange(2) if self.keep_outputs or self.kind == "letters" else 0

        async def handler(state, message, context):
            self.runs[message.id] += 1
            await self.step()
            if self.failing.get(message.id, 0) > 0:
                self.failing[message.id] -= 1
                self.faults["handler"] += 1
                raise Fault("the handler fails")
            state = [*(state or []), message.body["n"]]
            context.publish({"version": version, "state": state})
            return state

        async def publish(outputs):
            fault = self.fault("not published", "published without an answer")
            await self.step()
            for output in outputs if fault != "not published" else ():
                first = self.bodies.setdefault(output.id, output.body)
                if first != output.body:
                    raise Broken(f"output {output.id} has two bodies: {first} and {output.body}")
            if fault:
                raise Fault(fault)

        letters = {"dead_letter": self.letters.append} if self.kind == "letters" else {}
        options = {"attempts": self.chance.choice([1, 2]), "keep_outputs": self.keep_outputs, **letters}
        made = SimulatedProcessor(self.server.store, handler, publish, name="h", clock=self.wall_clock, **options)
        made.world = self
        return made

    async def worker(self, name):
        """Handle the partition from its committed offset to its end; start again after each fault."""
        while self.owner == name and self.committed < len(self.topic):
            processor, place = self.processor(), self.committed
            try:
                while place < len(self.topic):
                    batch = self.topic[place : place + self.chance.choice([1, 1, 3, 8])]
                    if self.chance.random() < 0.7:
                        await processor.handle_many(batch, batch=self.chance.choice([1, 3, 1000]))
                    else:
                        for message in batch:
                            await processor.handle(message)
                    place += len(batch)
                    await self.step()
                    if self.owner != name:  # the broker refuses the commit of a worker that has lost its partition
                        return
                    self.committed = place
            except (BatchFailed, Fault):
                await asyncio.sleep(self.chance.choice([0.01, 1]))

    async def operator(self):
        """Kill workers, give the partition to others, jump with the clocks, and clean up, for a while."""
        tasks, number = [], 0
        for _ in range(self.chance.randrange(1, 8)):
            number += 1
            self.owner = number
            tasks.append(asyncio.create_task(self.worker(number)))
            await asyncio.sleep(self.chance.choice([0.01, 0.1, 0.3, 1, 3]))
            if self.chance.random() < 0.5:
                self.faults["kill"] += 1
                tasks[-1].cancel()
            if self.chance.random() < 0.2:
                self.faults["clock"] += 1
                self.jump += self.chance.choice([-1, 1]) * self.chance.randrange(86_400 * 10**9)
            if self.kind == "letters" and self.chance.random() < 0.3:
                self.server.store.forget(self.wall_clock() // 1000 - 500_000, handler="h")
        self.faulty = False  # from here on, everything works, and the rest must be handled
        self.failing.clear()
        self.owner = number + 1
        await self.worker(self.owner)
        for task in tasks:
            task.cancel()
        for done in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(done, Exception):
                raise done

    async def tasks(self):
        """Handle all messages in tasks of one processor, in the order of the topic."""
        processor, waiting, place = self.processor(), [], 0
        while place < len(self.topic):
            batch = self.topic[place : place + self.chance.choice([1, 1, 1, 2, 4])]
            call = processor.handle(batch[0]) if len(batch) == 1 else processor.handle_many(batch)
            waiting.append(asyncio.create_task(call))
            place += len(batch)
            if self.chance.random() < 0.3:
                await self.step()
            if self.chance.random() < 0.2:
                waiting.append(asyncio.create_task(processor.handle(self.topic[place - 1])))
                await asyncio.sleep(0)
                waiting.pop().cancel()  # a repeated message, whose task ends before it is handled
                self.cancelled += 1
        await asyncio.gather(*waiting)

    def run(self):
        """Run the schedule, and judge it; raise `Broken` if a promise is not kept."""
        try:
            self.loop.run_until_complete(self.tasks() if self.kind == "tasks" else self.operator())
            self._judge()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()
            if hasattr(self.server.store, "close"):
                self.server.store.close()
        return self.faults

    def _judge(self):
        expected, outputs = {key: [] for key in self.keys}, 0
        for message in self.topic:
            if message.body["n"] not in expected[message.key]:
                expected[message.key].append(message.body["n"])
        for key, numbers in expected.items():
            history = self.server.store.history(key, handler="h")
            state = loads(history[-1].state) if history else []
            if len(state) != len(set(state)):
                raise Broken(f"{key}: a message has changed the state twice: {state}")
            if self.kind == "letters":  # the order is given up, and a message may be only a letter
                lost = set(numbers) - set(state) - {letter.message.body["n"] for letter in self.letters}
                if lost:
                    raise Broken(f"{key}: messages {lost} are lost")
            elif state != numbers:
                raise Broken(f"{key}: the messages {numbers} have made the state {state}")
            if history and history[-1].version != len(state):
                raise Broken(f"{key}: version {history[-1].version} has {len(state)} messages")
            outputs += len(state)
        # A changed message is a letter, and its outputs may not be published.
        changed = len({letter.message.id for letter in self.letters if letter.kind == "changed"})
        if not outputs - changed <= len(self.bodies) <= outputs:
            raise Broken(f"{outputs} messages have {len(self.bodies)} outputs, and {changed} messages are changed")
        if self.kind == "tasks" and (again := [id for id, count in self.runs.items() if count != self._copies(id)]):
            raise Broken(f"the handler has run more than once for {again}")

    def _copies(self, id):
        """Return how often the handler runs for a message while nothing fails: once for each delivery."""
        return 1 if self.keep_outputs else sum(message.id == id for message in self.topic)


def _postgres_store(address):
    """Return an empty store in a PostgreSQL server, in a schema of its own."""
    import psycopg

    from msgid.processing import PostgresStore

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS simulated CASCADE; CREATE SCHEMA simulated")
    return PostgresStore(address, schema="simulated")


def checked(seed, kind, folder=None, address=None):
    """Return the injected faults of a schedule, and the text of a broken promise or an empty text."""
    try:
        if kind == "tables":
            from simulation import tables

            return tables.run(random.Random(f"{kind} {seed}")), ""
        return World(seed, kind, folder, address).run(), ""
    except Exception:
        return Counter(), f"seed {seed}, kind {kind}: {traceback.format_exc(limit=-2)}"


def main():
    """Run the schedules, and print the broken promises; return 1 after one."""
    parser = argparse.ArgumentParser(prog="python -m simulation.processing", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, default=200, help="the number of schedules; default: 200")
    parser.add_argument("--kind", choices=KINDS, help="the kind of schedule; default: all in turn")
    parser.add_argument("--postgres", help="address of a server that holds the states; default: memory and SQLite")
    parser.add_argument("--first", action="store_true", help="end at the first broken promise")
    arguments = parser.parse_args()
    logging.getLogger("msgid.processing").setLevel(logging.CRITICAL)  # each dead letter is a warning
    kinds = (arguments.kind,) if arguments.kind else KINDS
    faults, broken, run = Counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for run in range(1, arguments.runs + 1):
            seed, kind = arguments.seed + (run - 1) // len(kinds), kinds[(run - 1) % len(kinds)]
            injected, text = checked(seed, kind, folder, arguments.postgres)
            faults += injected
            if text:
                broken += 1
                print(text, flush=True)
                if arguments.first:
                    break
    injected = ", ".join(f"{number:,} {fault}" for fault, number in sorted(faults.items()))
    print(f"{run:,} schedules from seed {arguments.seed}; injected: {injected}; {broken:,} broken promises")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
