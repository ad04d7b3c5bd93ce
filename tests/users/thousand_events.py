"""A process as a user starts it: a match over a thousand events, and what was compiled for it."""

import json

import numpy as np
import pyarrow as pa

import kleene
from kleene.engine import warming
from kleene.kernels import kernel_cache

compiled: list[str] = []
kernel_cache.observers.append(compiled.append)
size = 1_000
rng = np.random.default_rng(1)
events = pa.table(
    {
        "type": rng.choice(["A", "B", "C"], size),
        "ts": np.arange(size),
        "id": rng.integers(0, 20, size),
        "x": rng.random(size),
    }
)
matches = kleene.match(events, "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < c.x WITHIN 100")
closure = "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { [id] AND a[i].x > a[i-1].x } WITHIN 100"
matched = matches.num_rows + kleene.match(events, closure).num_rows
print(json.dumps({"matches": matched, "compiled": compiled, "kept": warming.all_kept()}))
