"""Which node an id carries: the choice of a MAC address, and the reasons for it.

In this order:

1. what the caller or the environment variable ``MSGID_NODE`` says;
2. the best network card that psutil lists;
3. getmac's address of the default route;
4. random bits with the multicast bit set, as RFC 9562 section 6.10 asks.

Nothing is looked up before the first id asks for it.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from msgid._validate import integer, quote
from msgid.layout import NODE_MAX, SYNTHETIC_BITS, format_mac, origin_of, synthetic_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "SHARED_NODES",
    "Interface",
    "NodeChoice",
    "PassedOver",
    "choose_interface",
    "find_node",
    "read_mac",
    "read_node",
    "shared_by",
]

T = TypeVar("T")

ENVIRONMENT_VARIABLE: Final = "MSGID_NODE"
RANDOM: Final = "random"

_NODE_LENGTH: Final = 6
_LOCALLY_ADMINISTERED: Final = 0x02_00_00_00_00_00

SHARED_NODES: Final = (
    # (first address, last address, whose)
    (0xAC_DE_48_00_11_22, 0xAC_DE_48_00_11_22, "the internal interface of every Mac with a T1 or T2 chip"),
    (0x0A_00_27_00_00_00, 0x0A_00_27_00_00_FF, "VirtualBox's host-only adapter"),
    (0x00_50_56_C0_00_00, 0x00_50_56_C0_00_FF, "VMware Workstation's and Fusion's host adapters (vmnet1, vmnet8)"),
    (0xEE_EE_EE_EE_EE_EE, 0xEE_EE_EE_EE_EE_EE, "Calico's end of every container's link"),
    (0x02_00_00_00_00_00, 0x02_00_00_00_00_00, "what Android 6 and later tells every app"),
)
_DOCKER: Final = 0x02_42  # the first two bytes; older Docker puts the container's IPv4 address behind them


class Interface(NamedTuple):
    """A network interface as the operating system lists it."""

    name: str
    mac: str
    is_up: bool


class PassedOver(NamedTuple):
    """A candidate that was not taken, or a library that could not be asked; the library has no ``mac``."""

    name: str
    mac: str
    reason: str


class NodeChoice(NamedTuple):
    """The node that ids carry, and how it was found. ``str()`` of it is the explanation.

    Attributes:
        node: the 48 bits.
        source: ``argument``, ``environment``, ``interface`` (psutil), ``default-route`` (getmac) or ``random``.
        reason: why this one, in words.
        interface: the network interface's name, where it is one's.
        passed_over: the candidates that were not taken, each with the reason.

    >>> import msgid
    >>> print(msgid.Generator(node="56:f7:e7:1c:36:1b").explain_node())
    56:f7:e7:1c:36:1b (mac): handed in by the caller
    """

    node: int
    source: Literal["argument", "environment", "interface", "default-route", "random"]
    reason: str
    interface: str | None = None
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def mac(self) -> str:
        """The node written as a MAC address."""
        return format_mac(self.node)

    @property
    def origin(self) -> str:
        """What the node declares itself to be; see `msgid.layout.origin_of`."""
        return origin_of(self.node)

    def __str__(self) -> str:
        lines = [f"{self.mac} ({self.origin}): {self.reason}"]
        lines += [f"  passed over {' '.join(filter(None, p[:2]))}: {p.reason}" for p in self.passed_over]
        return "\n".join(lines)


def read_mac(text: str) -> int:
    """Read ``aa:bb:cc:dd:ee:ff`` (``-`` will do for ``:``) as 48 bits.

    Raises:
        ValueError: the text has another shape.

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
    raise ValueError(f"a MAC address is written aa:bb:cc:dd:ee:ff, not {quote(text)}")


def read_node(node: object) -> NodeChoice:
    """Read the node that a caller hands in: an int, 6 bytes, a MAC address or ``"random"``."""
    if isinstance(node, str):
        if node == RANDOM:
            return NodeChoice(random_node(), "argument", "random bits, as the caller asked")
        number = read_mac(node)
    elif isinstance(node, bytes | bytearray):
        if len(node) != _NODE_LENGTH:
            raise ValueError(f"node must be {_NODE_LENGTH} bytes, not {quote(node)}")
        number = int.from_bytes(node, "big")
    elif isinstance(node, int):
        number = integer("node", node, 0, NODE_MAX)
    else:
        raise TypeError(f"node must be an int, {_NODE_LENGTH} bytes, aa:bb:cc:dd:ee:ff or random, not {quote(node)}")
    return NodeChoice(number, "argument", "handed in by the caller")


def random_node() -> int:
    """Draw a node that no network card can have.

    >>> from msgid.layout import origin_of
    >>> origin_of(random_node())
    'random'
    """
    return synthetic_node("random", int.from_bytes(os.urandom(6), "big") >> (48 - SYNTHETIC_BITS))


def _objection(mac: str) -> str | None:
    """Say why an address is no machine's own, or None."""
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
    """Choose the network card whose address is most likely this machine's alone.

    Up before down, universally administered before locally administered, never all zero (as loopback is), multicast
    or one of the addresses that many machines share, and Docker's made-up addresses last; ties by name, so that the
    choice is stable.

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
    """Choose the node, asking one source after the other, in the order this module's docstring gives.

    Raises:
        ValueError: ``MSGID_NODE`` is set to something that is neither a MAC address nor ``random``.
    """
    said = environment.get(ENVIRONMENT_VARIABLE)
    if said:
        if said == RANDOM:
            return NodeChoice(random_bits, "environment", f"random bits, as {ENVIRONMENT_VARIABLE} asks")
        try:
            return NodeChoice(read_mac(said), "environment", f"set by {ENVIRONMENT_VARIABLE}")
        except ValueError:
            raise ValueError(f"{ENVIRONMENT_VARIABLE} must be aa:bb:cc:dd:ee:ff or random, not {quote(said)}") from None
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
    """Return what a source answers; where its library is missing or fails, None and the reason."""
    try:
        return ask(), ()
    except Exception as error:  # psutil and getmac read files and run commands, and raise whatever those do
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


_found: NodeChoice | None = None
_finding = threading.RLock()


def find_node() -> NodeChoice:
    """Find this machine's node, once in a process.

    Raises:
        ValueError: ``MSGID_NODE`` is set to something that is neither a MAC address nor ``random``.
    """
    global _found
    with _finding:
        if _found is None:
            found = choose_node(os.environ, _list_interfaces, _default_route_mac, random_node())
            if _found is None:  # else a signal handler was here first
                _found = found
        return _found
