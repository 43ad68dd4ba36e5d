"""The stored values of a log in memory, which count calls, fail on demand, and go back to the last commit."""


def living(log):
    """Return the newest entry of each hash that has not expired."""
    from spark_ext.streaming._state.bucket_log import newest

    pages = [log._page(page) for run in log.runs for page in run.pages]
    return log._alive(newest([*pages, log._recently()]))


class Crash(Exception):
    """The worker ended between two calls."""


class Values:
    """Implements `spark_ext.streaming._state.bucket_log.Values`."""

    def __init__(self):
        self.numbered, self.list = {}, []
        self.writes = self.bytes = 0
        self.calls_left = None
        self._committed = {}, []

    def _call(self):
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                raise Crash

    def get(self, number):
        self._call()
        return self.numbered.get(number)

    def put(self, number, value):
        self._call()
        self.writes += 1
        self.bytes += len(value or b"")
        if value is None:
            self.numbered.pop(number)
        else:
            self.numbered[number] = value

    def recent(self):
        self._call()
        return list(self.list)

    def append(self, value):
        self._call()
        self.bytes += len(value or b"")
        self.list = [] if value is None else [*self.list, value]

    def commit(self):
        """Keep what a micro-batch wrote."""
        self._call()
        self._committed = dict(self.numbered), self.list

    def lose(self):
        """Lose what a micro-batch wrote before it crashed."""
        numbered, self.list = self._committed
        self.numbered, self.calls_left = dict(numbered), None
