# Make a virtual environment, if there is none, and install the tested versions in it.
# usage: sh tools/venv.sh FOLDER
set -eu
folder=$1

fits='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
  for python in python3 python3.13 python3.12 python3.11 none; do
    "$python" -c "$fits" 2>/dev/null && break
  done
  if [ "$python" = none ]; then
    echo "The course needs Python 3.11, 3.12 or 3.13, and none was found." >&2
    echo "python3 here is: $(python3 --version 2>&1)" >&2
    exit 1
  fi
  echo "Making $folder with $("$python" --version)."
  "$python" -m venv "$folder"
fi

echo "Installing the tested versions in $folder: about 660 MB, from half a minute up."
"$folder/bin/python" -m pip install --disable-pip-version-check \
  --require-hashes -r requirements.lock
"$folder/bin/python" -m pip install --disable-pip-version-check --quiet \
  --no-deps --no-build-isolation -e .
