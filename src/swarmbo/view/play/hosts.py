"""Where the server of `swarmbo play` listens, and by which names it is called."""

import ipaddress
import socket

from swarmbo.errors import InputError


def host_name(host: str) -> str | None:
    """The name in a Host header, without the port; None when it is none."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host.lower(), "0"
    if not (port.isascii() and port.isdigit()):
        return None
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def is_address(name: str) -> bool:
    """Whether a name is an IP address, which no stranger's domain is."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return "%" not in name  # a zone may be any text


def is_served(name: str, host: str, here: str) -> bool:
    """Whether a name in a Host header is one of a server that was told to listen at `host`.

    `here` is the address of this machine at which the request arrived. No other address
    is the server's, except that one which listens at all addresses is on loopback too.
    """
    if name in ("localhost", host.lower()):
        return name != ""
    everywhere = _is_everywhere(host)
    if not is_address(name):
        return everywhere and name == socket.gethostname().lower()
    address = _address(name)
    here = here.partition("%")[0]
    return (is_address(here) and address == _address(here)) or (everywhere and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address, in version 4 where it only looks like one of version 6."""
    found = ipaddress.ip_address(name)
    return getattr(found, "ipv4_mapped", None) or found


def _is_everywhere(host: str) -> bool:
    """Whether a host stands for all addresses of this machine."""
    return host == "" or (is_address(host) and ipaddress.ip_address(host).is_unspecified)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; InputError when there cannot be one."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(where)
            found.listen(128)
        except BaseException:
            found.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"cannot listen at {host}, port {port} ({reason.lower()}); "
            "give another --host or --port, 0 for a free port"
        ) from None
    return found


def address_of(listening: socket.socket, token: str | None = None) -> str:
    """The page's address, with the token that opens it if there is one."""
    host, port, *_ = listening.getsockname()
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    address = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
    return address if token is None else f"{address}?token={token}"
