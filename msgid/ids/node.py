"""The choice of the node of new IDs, with an explanation.

The first available source is used:

1. the argument of the caller, or the environment variable ``MSGID_NODE``;
2. the best network card that psutil lists;
3. the address of the default route, from getmac;
4. random bits with the multicast bit set, as RFC 9562 section 6.10 requires.

The lookup runs when the first ID is made.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, NoReturn, TypeVar

from msgid._validate import integer, quote
from msgid.layout import NODE_MAX, SYNTHETIC_BITS, format_mac, origin_of, synthetic_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

ENVIRONMENT_VARIABLE: Final = "MSGID_NODE"
RANDOM: Final = "random"

_NODE_LENGTH: Final = 6
_LOCALLY_ADMINISTERED: Final = 0x02_00_00_00_00_00

SHARED_NODES: Final = (
    # (first address, last address, owner)
    (0xAC_DE_48_00_11_22, 0xAC_DE_48_00_11_22, "the internal interface of every Mac with a T1 or T2 chip"),
    (0x0A_00_27_00_00_00, 0x0A_00_27_00_00_FF, "VirtualBox's host-only adapter"),
    (0x00_50_56_C0_00_00, 0x00_50_56_C0_00_FF, "VMware Workstation's and Fusion's host adapters (vmnet1, vmnet8)"),
    (0xEE_EE_EE_EE_EE_EE, 0xEE_EE_EE_EE_EE_EE, "Calico's end of every container's link"),
    (0x02_00_00_00_00_00, 0x02_00_00_00_00_00, "what Android 6 and later tells every app"),
)
_DOCKER: Final = 0x02_42  # the first two bytes; older versions of Docker append the container's IPv4 address


class Interface(NamedTuple):
    """A network interface as the operating system lists it."""

    name: str
    mac: str
    is_up: bool


class PassedOver(NamedTuple):
    """A rejected candidate, or a library that failed. A library has an empty ``mac``."""

    name: str
    mac: str
    reason: str


class NodeChoice(NamedTuple):
    """The node of a generator's IDs and how it was chosen. ``str()`` returns the explanation.

    Attributes:
        node: The node as an integer of 48 bits.
        source: ``argument``, ``environment``, ``interface`` (psutil), ``default-route`` (getmac) or ``random``.
        reason: The reason for this choice, in words.
        interface: Name of the network interface; None if the node is not an interface's address.
        passed_over: The rejected candidates, each with the reason.

    >>> import msgid
    >>> print(msgid.Generator(node="56:f7:e7:1c:36:1b").explain_node())
    56:f7:e7:1c:36:1b (mac): passed by the caller
    """

    node: int
    source: Literal["argument", "environment", "interface", "default-route", "random"]
    reason: str
    interface: str | None = None
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def mac(self) -> str:
        """The node as the text of a MAC address."""
        return format_mac(self.node)

    @property
    def origin(self) -> str:
        """The origin that the node declares; see `msgid.layout.origin_of`."""
        return origin_of(self.node)

    def __str__(self) -> str:
        lines = [f"{self.mac} ({self.origin}): {self.reason}"]
        lines += [f"  passed over {' '.join(filter(None, p[:2]))}: {p.reason}" for p in self.passed_over]
        return "\n".join(lines)


def read_mac(text: str) -> int:
    """Parse a MAC address, ``aa:bb:cc:dd:ee:ff`` or ``aa-bb-cc-dd-ee-ff``, as an integer of 48 bits.

    Raises:
        ValueError: if the text has another form.

    >>> hex(read_mac("56:F7:e7:1c:36:1b"))
    '0x56f7e71c361b'
    """
    parts = text.replace("-", ":").split(":")
    if len(parts) == _NODE_LENGTH and {len(part) for part in parts} == {2}:
        try:
            raw = bytes.fromhex("".join(parts))
        except ValueError:
            raw = b""
        if len(raw) == _NODE_LENGTH:
            return int.from_bytes(raw, "big")
    raise ValueError(f"a MAC address must be of the form aa:bb:cc:dd:ee:ff, got {quote(text)}")


def read_node(node: object) -> NodeChoice:
    """Check the ``node`` argument of a caller: an int, 6 bytes, a MAC address or ``"random"``."""
    if isinstance(node, str):
        if node == RANDOM:
            return NodeChoice(random_node(), "argument", "random bits, chosen by the caller")
        number = read_mac(node)
    elif isinstance(node, bytes | bytearray):
        if len(node) != _NODE_LENGTH:
            raise ValueError(f"node must be {_NODE_LENGTH} bytes, got {quote(node)}")
        number = int.from_bytes(node, "big")
    elif isinstance(node, int):
        number = integer("node", node, 0, NODE_MAX)
    else:
        raise TypeError(f"node must be an int, {_NODE_LENGTH} bytes, aa:bb:cc:dd:ee:ff or random, got {quote(node)}")
    return NodeChoice(number, "argument", "passed by the caller")


def random_node() -> int:
    """Return a random node that no network card can have.

    >>> from msgid.layout import origin_of
    >>> origin_of(random_node())
    'random'
    """
    return synthetic_node("random", int.from_bytes(os.urandom(6), "big") >> (48 - SYNTHETIC_BITS))


def _objection(mac: str) -> str | None:
    """Return the reason why an address does not identify one machine; None if it does."""
    try:
        node = read_mac(mac)
    except ValueError:
        return "not 6 bytes"
    if node == 0:
        return "all zero"
    if origin_of(node) != "mac":
        return "a multicast address"
    whose = shared_by(node)
    return None if whose is None else f"shared by many machines: {whose}"


def shared_by(node: int) -> str | None:
    """Return whose address a node is if many machines are known to share it; else None.

    >>> shared_by(0xACDE48001122)
    'the internal interface of every Mac with a T1 or T2 chip'
    """
    return next((whose for first, last, whose in SHARED_NODES if first <= node <= last), None)


def _rank(interface: Interface) -> tuple[bool, bool, bool, str]:
    node = read_mac(interface.mac)
    return (
        node >> 32 == _DOCKER,
        not interface.is_up,
        bool(node & _LOCALLY_ADMINISTERED),
        interface.name,
    )


_BEHIND: Final = ("derived from an IP address by Docker", "down", "locally administered", "later by name")


def choose_interface(interfaces: Iterable[Interface]) -> tuple[Interface | None, tuple[PassedOver, ...]]:
    """Return the network card whose address most likely belongs to this machine only, and the rejected cards.

    Cards that are up come first, then universally administered addresses; Docker's generated addresses come last. Ties
    are broken by name, so the choice is stable. Zero, multicast and commonly shared addresses are always rejected.

    >>> cards = [Interface("docker0", "02:42:ac:11:00:01", True), Interface("eth0", "00:16:3e:01:02:03", True)]
    >>> choose_interface(cards)[0].name
    'eth0'
    """
    fit, passed_over = [], []
    for interface in interfaces:
        objection = _objection(interface.mac)
        if objection is None:
            fit.append(interface)
        else:
            passed_over.append(PassedOver(interface.name, interface.mac, objection))
    fit.sort(key=_rank)
    for other in fit[1:]:
        pairs = zip(_rank(fit[0]), _rank(other), _BEHIND, strict=True)
        reason = next((reason for taken, left, reason in pairs if taken != left), _BEHIND[-1])
        passed_over.append(PassedOver(other.name, other.mac, f"{reason}; {fit[0].name} comes first"))
    return (fit[0] if fit else None), tuple(passed_over)


def choose_node(
    environment: Mapping[str, str],
    list_interfaces: Callable[[], Iterable[Interface]],
    default_route_mac: Callable[[], str | None],
    random_bits: int,
) -> NodeChoice:
    """Return the node from the first available source, in the order of this module's docstring.

    Raises:
        ValueError: if ``MSGID_NODE`` is neither a MAC address nor ``random``.
    """
    said = environment.get(ENVIRONMENT_VARIABLE)
    if said:
        if said == RANDOM:
            return NodeChoice(random_bits, "environment", f"random bits, as {ENVIRONMENT_VARIABLE} asks")
        try:
            return NodeChoice(read_mac(said), "environment", f"set by {ENVIRONMENT_VARIABLE}")
        except ValueError:
            raise ValueError(f"{ENVIRONMENT_VARIABLE} must be aa:bb:cc:dd:ee:ff or random, got {quote(said)}") from None
    interfaces, failed = _asked("psutil", list_interfaces)
    taken, passed_over = choose_interface(interfaces or ())
    passed_over += failed
    if taken is not None:
        state = "up" if taken.is_up else "down"
        return NodeChoice(
            read_mac(taken.mac),
            "interface",
            f"network interface {taken.name}, which is {state}",
            taken.name,
            passed_over,
        )
    mac, failed = _asked("getmac", default_route_mac)
    passed_over += failed
    if mac is not None:
        objection = _objection(mac)
        if objection is None:
            return NodeChoice(read_mac(mac), "default-route", "the default route's interface", None, passed_over)
        passed_over += (PassedOver("default route", mac, objection),)
    return NodeChoice(
        random_bits, "random", "random bits: no network interface has an address of its own", None, passed_over
    )


def _asked(library: str, ask: Callable[[], T]) -> tuple[T | None, tuple[PassedOver, ...]]:
    """Return the result of a source; None and the reason if the library is missing or fails."""
    try:
        return ask(), ()
    except Exception as error:  # psutil and getmac read files and run commands, which can raise any error
        return None, (PassedOver(library, "", f"{type(error).__name__}: {error}"),)


def _list_interfaces() -> list[Interface]:
    import psutil

    up = {name: stats.isup for name, stats in psutil.net_if_stats().items()}
    return [
        Interface(name, address.address.lower().replace("-", ":"), up.get(name, False))
        for name, addresses in psutil.net_if_addrs().items()
        for address in addresses
        if address.family == psutil.AF_LINK
    ]


def _default_route_mac() -> str | None:
    import getmac

    return getmac.get_mac_address()


def _interrupted() -> NoReturn:
    # psutil may be half imported for ever: no thread of this process goes on with its import.
    raise RuntimeError("the process was forked during the lookup")


_found: NodeChoice | None = None
_finding = threading.RLock()
_finder: int | None = None
"""The process in which a lookup runs; in a forked child, the parent whose lookup the fork interrupted."""


def find_node() -> NodeChoice:
    """Return this machine's node; the lookup runs once per process.

    A child that is forked while another thread looks up the node has a random node.

    Raises:
        ValueError: if ``MSGID_NODE`` is neither a MAC address nor ``random``.
    """
    global _finder, _finding, _found
    while _found is None:
        if _finder not in {None, os.getpid()}:
            _found = choose_node(os.environ, _interrupted, _interrupted, random_node())
            _finding = threading.RLock()
        lock = _finding
        if lock.acquire(timeout=1):  # not for ever: a signal handler can fork while this thread waits
            try:
                if _found is None:
                    _finder = os.getpid()
                    found = choose_node(os.environ, _list_interfaces, _default_route_mac, random_node())
                    if _found is None:  # otherwise a signal handler has found it in the meantime
                        _found = found
            finally:
                _finder = None
                lock.release()
    return _found
