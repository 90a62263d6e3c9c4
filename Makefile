# Every target is one line; `make build` sets up .venv from a bare checkout and the others ask for it.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml setup.py $(shell find src -name '*.py')
# Without a C compiler the kernels are installed as plain Python, and tested as that.
KERNELS := $(if $(shell command -v gcc || command -v cc),compiled,interpreted)
# A fixed order of sets, so that a seed of the simulator replays in every process.
export PYTHONHASHSEED := 0
INSTALLED := BARNABAS_KERNELS=$(KERNELS) $(BIN)/python -m pytest
INTERPRETED := BARNABAS_KERNELS=interpreted PYTHONPATH=src $(BIN)/python -m pytest
# Some tests take minutes: a worker that has done its own takes of the other's. (With three all of it took 19
# minutes, but a test of processes that are stopped for a while has failed beside so many others.)
BOTH := -n 2 --dist worksteal
# All but those that need a network, or programs that pip does not bring.
TESTS := --ignore=tests/interop tests

.PHONY: demo test check interop lint build bench fuzz vectors assignors answers clients clean

demo: build ; $(BIN)/barnabas demo
test: lint ; $(INSTALLED) $(BOTH) $(TESTS) && $(INTERPRETED) $(BOTH) -m kernel $(TESTS)
check: lint ; $(INSTALLED) $(BOTH) tests/unit tests/property tests/scenario --ignore=tests/scenario/clients && $(INTERPRETED) $(BOTH) -m kernel tests/unit
interop: build ; BARNABAS_CLIENTS_TABLE=docs/reference/clients.md $(INSTALLED) $(BOTH) -rs --ignore=tests/interop/spark tests/scenario/clients/test_checklist.py tests/interop && $(INSTALLED) -rs tests/interop/spark
lint: build ; $(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/lint-imports --no-cache
bench: build ; for file in bench/codec.py bench/columns.py bench/log.py bench/broker.py bench/client.py bench/embedded.py bench/groups.py bench/transactions.py bench/spark.py; do $(BIN)/python $$file || exit 1; done
fuzz: build ; BARNABAS_FUZZ=1000000 $(INSTALLED) tests/property/test_malformed_messages.py && BARNABAS_FUZZ=100000 $(INSTALLED) $(BOTH) tests/property
vectors: ; mvn -q -B -f tests/differential/kafka_vectors/pom.xml compile exec:java -Dexec.args=tests/fixtures/kafka-4.3
assignors: ; mvn -q -B -f tests/differential/kafka_assignors/pom.xml compile exec:java -Dexec.args=tests/fixtures/kafka-4.3
answers: build ; BARNABAS_WRITE_ANSWERS=1 $(INSTALLED) tests/interop/test_answers_of_kafka.py
clients: build ; BARNABAS_CLIENTS_TABLE=docs/reference/clients.md $(INSTALLED) $(BOTH) tests/scenario/clients/test_checklist.py
build: .venv/.built
clean: ; rm -rf .venv build dist src/*.egg-info

.venv/.built: $(SOURCES) | .venv ; rm -rf build/lib* && $(BIN)/pip install -q --disable-pip-version-check '.[dev]' && touch $@
.venv: ; $(PYTHON) -m venv .venv
