"""Where a PostgreSQL database is, as an error may say it: host, port and name, nothing else of the address."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

UNKNOWN = "the address in store.url"
DEFAULT_PORT = "5432"


def place_of(dsn: str) -> str:
    """``host:5432, database "name"``. An address that may be read in two ways is not repeated at all: what looks
    like a host may be a part of a password.
    """
    try:
        parts = urlsplit(dsn)
        options = parse_qs(parts.query)
    except ValueError:
        return UNKNOWN
    rest = dsn.partition("://")[2].removeprefix(parts.netloc)
    if "@" in rest or "#" in dsn:
        return UNKNOWN
    hosts = parts.netloc.rpartition("@")[2] or ",".join(options.get("host", []))
    port = (options.get("port") or [DEFAULT_PORT])[0]
    name = unquote(parts.path.removeprefix("/")) or (options.get("dbname") or options.get("database") or [""])[0]
    database = f'database "{name}"' if name else "database of the user's name"
    if not hosts:
        return f"the host of PGHOST or this machine, {database}"
    return f"{', '.join(_with_port(unquote(host), port) for host in hosts.split(','))}, {database}"


def _with_port(host: str, port: str) -> str:
    has_port = host.rpartition("]")[2].startswith(":") if host.startswith("[") else ":" in host
    return host if has_port or host.startswith("/") else f"{host}:{port}"
