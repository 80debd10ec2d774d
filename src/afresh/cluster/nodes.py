"""What nodes are called: an address and the beginning of Ray's own number, such as 10.0.0.7/4f87e4."""

from collections.abc import Collection


def address_of(label: str) -> str:
    """The address alone.

    >>> address_of("10.0.0.7/4f87e4"), address_of("worker-host")
    ('10.0.0.7', 'worker-host')
    """
    return label.partition("/")[0]


def is_in(label: str, names: Collection[str]) -> bool:
    """Whether a node is among these names, by its whole label or by its address alone.

    >>> is_in("10.0.0.7/4f87e4", {"10.0.0.7"}), is_in("10.0.0.7/4f87e4", {"10.0.0.7/22f1e7"})
    (True, False)
    """
    return label in names or address_of(label) in names


def short(label: str, labels: Collection[str]) -> str:
    """What a node may be called among these: its address, unless another one has it too.

    >>> nodes = ["10.0.0.7/4f87e4", "10.0.0.7/4f87e4", "127.0.0.1/22f1e7", "127.0.0.1/8b18e9"]
    >>> short(nodes[0], nodes), short(nodes[2], nodes)
    ('10.0.0.7', '127.0.0.1/22f1e7')
    """
    address = address_of(label)
    return address if all(other == label or address_of(other) != address for other in labels) else label
