"""The values of a bucket in a dictionary, which counts reads and writes."""


class Values:
    """Implements `spark_ext.streaming._pages.Values`."""

    def __init__(self):
        self.held = {}
        self.reads = self.writes = 0

    def get(self, name, number):
        self.reads += 1
        return self.held.get((name, number))

    def put(self, name, number, value):
        self.writes += 1
        self.held[name, number] = value

    def remove(self, name, number):
        self.writes += 1
        del self.held[name, number]

    def pages(self):
        self.reads += 1
        return iter([(number, value) for (name, number), value in self.held.items() if not name])
