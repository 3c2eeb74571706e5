"""How an epoch is cut into batches."""


def batch_sizes(n: int, size: int) -> list[int]:
    """The sizes of the batches of an epoch; a last point alone joins the batch before.

    Batch normalisation cannot train on one point.

    >>> batch_sizes(10, 4), batch_sizes(9, 4), batch_sizes(3, 1)
    ([4, 4, 2], [4, 5], [1, 1, 1])
    """
    whole, rest = divmod(n, size)
    if rest == 1 and whole:
        return [size] * (whole - 1) + [size + 1]
    return [size] * whole + [rest] * (rest > 0)
