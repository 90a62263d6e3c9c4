# `make demo` and `make test` start from a bare checkout and set up .venv; the other targets do so as well.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check
SOURCES := pyproject.toml setup.py $(shell find src -name generated -prune -o -name '*.py' -print)
# Without a C compiler the kernels are installed as plain Python, and tested as that.
KERNELS := $(if $(shell command -v gcc || command -v cc),compiled,interpreted)
# Spark needs Java 17 or newer. The machine's own saves a download of 100 MB.
JAVA_MAJOR = $(shell java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
DEMO_EXTRA = $(if $(shell test "$(JAVA_MAJOR)" -ge 17 2> /dev/null && echo yes),spark,spark-jre)
# A fixed order of sets, so that a seed of the simulator replays in every process.
export PYTHONHASHSEED := 0
INSTALLED := BARNABAS_KERNELS=$(KERNELS) $(BIN)/python -m pytest
INTERPRETED := BARNABAS_KERNELS=interpreted PYTHONPATH=src $(BIN)/python -m pytest
# Many tests wait for processes, so a third worker finds idle cores. `worksteal` evens out tests of minutes.
WORKERS := -n 3 --dist worksteal
# Tests in interop need a network, or programs that pip does not install.
TESTS := --ignore=tests/interop tests
BENCHES := codec columns log broker client embedded groups transactions spark

# Spark is half a gigabyte. It is downloaded and installed while the kernels compile.
SPARK := $(shell sed -n 's/.*"\(pyspark>=[0-9.]*\)".*/\1/p' pyproject.toml)
define install
rm -rf build/lib* build/wheel
$(PIP) install '$(SPARK)' & spark=$$!; $(PIP) wheel --no-deps -w build/wheel . && wait $$spark
$(PIP) uninstall -q -y barnabas
$(PIP) install "$$(echo build/wheel/*.whl)[$(1)]"
endef

.PHONY: demo test check soak hostile interop lint build wheel bench fuzz docs vectors assignors answers requests clients clean

demo: .venv/.demo ; $(BIN)/barnabas demo
test: lint ; $(INSTALLED) $(WORKERS) --durations=10 $(TESTS) && $(INTERPRETED) $(WORKERS) -m "kernel and not soak" $(TESTS)
check: lint ; $(INSTALLED) $(WORKERS) tests/unit
soak: build ; BARNABAS_SOAK=1 $(INSTALLED) -n 2 --dist worksteal -m "soak or scaled" --durations=10 $(TESTS)
hostile: build ; BARNABAS_SOAK=1 $(INSTALLED) --durations=10 tests/hostile
interop: build ; BARNABAS_CLIENTS_TABLE=docs/reference/clients.md $(INSTALLED) -n 2 --dist worksteal -rs --ignore=tests/interop/spark tests/scenario/clients/test_checklist.py tests/interop && $(INSTALLED) -rs tests/interop/spark
lint: build ; $(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/lint-imports --no-cache
bench: build ; for name in $(BENCHES); do $(BIN)/python bench/$$name.py || exit 1; done
fuzz: build ; BARNABAS_FUZZ=1000000 $(INSTALLED) tests/property/test_malformed_messages.py && BARNABAS_FUZZ=100000 $(INSTALLED) $(WORKERS) tests/property && BARNABAS_FUZZ_REQUESTS=10000000 $(INSTALLED) -s tests/hostile/test_fuzz_live.py
vectors: ; mvn -q -B -f tests/differential/kafka_vectors/pom.xml compile exec:java -Dexec.args=tests/fixtures/kafka-4.3
assignors: ; mvn -q -B -f tests/differential/kafka_assignors/pom.xml compile exec:java -Dexec.args=tests/fixtures/kafka-4.3
answers: build ; BARNABAS_WRITE_ANSWERS=1 $(INSTALLED) tests/interop/test_answers_of_kafka.py tests/interop/spark/test_recorded_answers.py
requests: build ; PYTHONPATH=tests $(BIN)/python -m support.wire.record_requests
clients: build ; BARNABAS_CLIENTS_TABLE=docs/reference/clients.md $(INSTALLED) $(WORKERS) tests/scenario/clients/test_checklist.py
wheel: .venv ; rm -rf build/lib* && $(PIP) wheel -q --no-deps -w dist . && du -h dist/*.whl
build: .venv/.built
clean: ; rm -rf .venv build dist src/*.egg-info src/barnabas/protocol/generated

# The demo's packages are among those of the tests, so that a build satisfies both.
.venv/.demo: $(SOURCES) | .venv
	$(call install,$(DEMO_EXTRA))
	touch $@
.venv/.built: $(SOURCES) | .venv
	$(call install,dev)
	touch .venv/.demo $@
.venv: ; $(PYTHON) -m venv .venv
