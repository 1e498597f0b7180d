# Sourced by the commands in this folder, which set $root: finds Python, keeps .venv as pyproject.toml says.
# POSIX sh, and no programs but readlink, dirname, basename and cat.

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    # Sets $python to the first interpreter that is at least 3.11; $ONWARD_PYTHON goes before all others.
    if [ -n "${ONWARD_PYTHON:-}" ]; then
        is_new_enough "$ONWARD_PYTHON" || fail "ONWARD_PYTHON is '$ONWARD_PYTHON', which is no Python 3.11 or newer"
        python=$ONWARD_PYTHON
        return
    fi
    for python in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$python"; then return; fi
    done
    found=$(python3 --version 2>/dev/null || echo 'no python3 at all')
    fail "Python 3.11 or newer is needed; on the PATH there is $found.
Install it (https://www.python.org/downloads/), or name one: ONWARD_PYTHON=/path/to/python3.11 $0"
}

wanted() {
    # What an up-to-date .venv was made from: this place and this pyproject.toml (bin/_setup.py writes the same).
    printf '%s\n' "$root"
    cat "$root/pyproject.toml"
}

is_current() { # is_current PROFILE: whether .venv was last installed for it from the present pyproject.toml
    [ -x "$root/.venv/bin/onward" ] && [ -f "$root/.venv/onward-$1.stamp" ] &&
        [ "$(wanted)" = "$(cat "$root/.venv/onward-$1.stamp")" ]
}

ensure_venv() { # ensure_venv user|dev: a dev environment serves users too
    if is_current dev; then return; fi
    if [ "$1" = user ] && is_current user; then return; fi
    find_python
    "$python" "$root/bin/_setup.py" "$1" || exit $?
}
