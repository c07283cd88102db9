# make demo: install, train a small policy, compare it on held-out programs, write runs/demo/report.html
# make test, make lint, make bench, make docs: what they say. All are safe to repeat.
# make fuzz: all fuzzers in turn, until Ctrl-C; make fuzz SECONDS=600 sets a limit
# make test-avx2: the tests as on a processor that has nothing wider than AVX2

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEMO := runs/demo
ALONE := $(PYTHON) .ci/alone.py .demo.lock

.PHONY: demo again-demo test test-avx2 fuzz lint bench docs format clean

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	# torch first and by name: asked for by another package, pip may take a build with CUDA libraries
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@

# One at a time, the installation included: two would mix their files.
demo:
	@$(ALONE) $(MAKE) --no-print-directory $(DEMO)/report.html
	@echo "open $(DEMO)/report.html; make again-demo runs it anew"

again-demo:
	@$(ALONE) rm -rf $(DEMO)
	@$(MAKE) --no-print-directory demo

$(DEMO)/report.html: $(INSTALLED)
	rm -rf $(DEMO) && mkdir -p runs
	$(BIN)/irgym imitate loops --dataset mm64_128_16_range --searched 8 --seconds 4 --programs 60 --out runs/demo-start.pt
	$(BIN)/irgym train loops --dataset mm64_128_16_range --seconds 75 --run $(DEMO) \
		--set start=runs/demo-start.pt episodes=128 lr=3e-4 iterations=150
	$(BIN)/irgym evaluate $(DEMO) --limit 10
	$(BIN)/irgym compare loops --dataset mm64_128_16_range --limit 5 --seconds 3 --run-folder $(DEMO) \
		--methods base,random,greedy,beam,evolutionary,policy:$(DEMO),guided:$(DEMO),numpy
	$(BIN)/irgym report $(DEMO)

# Without files of bytecode, each of hundreds of processes would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# What is timed has the machine to itself; the rest runs in two processes of one thread each, whose summary
# comes last.
# Only files with such tests are looked through first: importing all of them takes a quarter of a minute.
test: $(INSTALLED)
	status=0; \
	$(BIN)/pytest -m timed $$(grep -rl --include='*.py' 'mark\.timed' tests) || status=$$?; \
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -m "not timed" -n 2 --dist loadfile || status=$$?; \
	exit $$status

test-avx2: $(INSTALLED)
	tests/avx2/run.sh $(MAKE) test

fuzz: $(INSTALLED)
	$(BIN)/python fuzz/run.py $(if $(SECONDS),--seconds $(SECONDS))

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(INSTALLED)
	for script in benchmarks/*_throughput.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: $(VENV)/.docs
	$(BIN)/python docs/generate.py
	$(BIN)/mkdocs build --strict

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) site runs
