# The two commands of the course:  make book   make test
# They need Python 3.11 or newer and make, and put everything else in $(VENV).

VENV := .venv
BIN := $(VENV)/bin
VENDOR := book/_static/vendor
WORKERS := 2
ACCURACY := tests/test_accuracy.py tests/test_published_memory.py
PORT := 8000

.PHONY: help book serve test lint bench notebooks venv lock screenshots clean

help:
	@echo "make book       execute the notebooks, build the pages"
	@echo "make serve      show the built pages at http://localhost:$(PORT)"
	@echo "make test       run every check"
	@echo "make notebooks  execute the notebooks in place, keep what they print"
	@echo "make bench      how fast library and what-ifs answer, on this machine"
	@echo "make lint       only the checks of style"
	@echo "make lock       choose new versions for requirements.lock"
	@echo "make clean      remove what was built (not $(VENV))"

# A failed build must not leave pages that the next one would take for good.
book: $(VENV)/.ready $(VENDOR)/.ready
	@test -e _build/.passed || rm -rf _build/html _build/.doctrees
	@rm -f _build/.passed
	@$(BIN)/python tools/browser.py $(VENDOR)/whatif
	$(BIN)/jupyter-book build . -W --keep-going
	@touch _build/.passed
	@echo "The book is built: $(CURDIR)/_build/html/index.html"
	@echo "To read it: make serve"

serve:
	@test -e _build/html/index.html || { echo "Nothing built yet: make book"; exit 1; }
	@echo "Read at http://localhost:$(PORT) ; stop with Ctrl-C"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

test: lint
	$(BIN)/pytest -n $(WORKERS) lib tests --ignore=tests/browser $(ACCURACY:%=--ignore=%)
	$(BIN)/pytest -q -s $(ACCURACY)
	@if $(BIN)/python tools/chromium.py; then $(MAKE) book; fi
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --nbval -rs notebooks book tests/browser

lint: $(VENV)/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python tools/notebooks.py --check

bench: $(VENV)/.ready
	@$(BIN)/python tools/bench.py
	@$(BIN)/python tools/bench_browser.py

notebooks: $(VENV)/.ready
	$(BIN)/python tools/notebooks.py

screenshots: book
	$(BIN)/python tools/screenshots.py _build/screenshots

venv: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml tools/venv.sh
	@sh tools/venv.sh $(VENV)
	@touch $@

$(VENDOR)/.ready: package-lock.json tools/vendor.py $(VENV)/.ready
	@$(BIN)/python tools/vendor.py $(VENDOR)
	@touch $@

lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-header --no-annotate --quiet --extra test -o requirements.lock pyproject.toml
	uv pip compile --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-header --no-annotate --quiet -o tools/node.lock tools/node.in

clean:
	rm -rf _build $(VENDOR) node_modules .hypothesis .pytest_cache \
	  .ruff_cache */.ruff_cache .import_linter_cache
