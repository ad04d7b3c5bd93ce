"""The `graph` column of OUTPUT COMPRESSED (SASE+ §4.2, §5.1): all matches that one event completes, with shared parts.

A node is an event under a variable; its predecessors are the nodes that can come just before it in a match. A match is
a path from a start to one of `ends`, and each match is one path. Rows whose matches have nodes in common share these:
the first of them, the host, holds the nodes of all. They need nothing of the stream that they came from.
"""

from __future__ import annotations

import pyarrow as pa

# In `predecessors`: a match can begin at this node, too. A node without predecessors is a start anyway.
BEGINNING = -1
# As a node's variable: the node takes no event and stands for all paths to its predecessors, so that many nodes can
# share one long list of predecessors.
SILENT = -1


GRAPH = "graph"
# What every row has in its graph; the rest is held by hosts, and by rows that are alone.
OF_EACH_ROW = ("shared", "ends", "skipped")


def is_graph_type(kind: pa.DataType) -> bool:
    """Whether a column is one of graphs, and no variable that is called so."""
    return pa.types.is_struct(kind) and {"shared", "predecessors"} <= {part.name for part in kind}


def graph_type(columns: pa.Schema, time: pa.DataType) -> pa.DataType:
    """The type of the column, for events with these columns. Signed integers only, since Spark has no others.

    shared        a number that the rows of one host have in common, the host among them; NULL when a row is alone
    ends          the nodes at which a match is complete
    skipped       how many of `begins`, from the first, are too early for this row's window

    Of a host, and of a row that is alone; the other rows have nothing here:

    digest        the query's digest in hexadecimal digits, which match ids begin with
    variables     the positive variables in pattern order; `columns` are those of its events, NULL when all
    nodes         a place in `variables` and one in `events`, −1 and −1 when silent; after its predecessors
    offsets       [node + 1]: node n has `predecessors[offsets[n]:offsets[n + 1]]`
    predecessors  numbers of nodes, −1 for the beginning of a match
    begins        the nodes at which a match can begin, from the earliest; empty where no row skips any
    events        in canonical order
    starts        [event]: when it starts
    hashes        [event]: its part in match ids; the bits of an unsigned integer
    """
    variable = pa.struct([("name", pa.string()), ("is_list", pa.bool_()), ("columns", pa.list_(pa.string()))])
    node = pa.struct([("variable", pa.int32()), ("event", pa.int32())])
    return pa.struct(
        [
            ("shared", pa.int64()),
            ("ends", pa.list_(pa.int32())),
            ("skipped", pa.int32()),
            ("digest", pa.string()),
            ("variables", pa.list_(variable)),
            ("nodes", pa.list_(node)),
            ("offsets", pa.list_(pa.int32())),
            ("predecessors", pa.list_(pa.int32())),
            ("begins", pa.list_(pa.int32())),
            ("events", pa.list_(pa.struct(list(columns)))),
            ("starts", pa.list_(time)),
            ("hashes", pa.list_(pa.int64())),
        ]
    )
