# Sourced by the `run` of each language, whose folder is `here`.
# `build`: what it fetches and compiles. Inside of the clone, so nothing is left behind and no run depends on an earlier one.
build=$here/../../../.baton/interop/$(basename "$here")
mkdir -p "$build"
build=$(realpath "$build")

# What package clients say where a registry cannot be reached, or is a mirror without the SDK of Java. Whatever else they say is
# a failure.
unreachable='could not resolve|name resolution|no such host|unknown host|connection refused|no route to host|unreachable|timed out|i/o timeout|handshake timeout|connection reset|could not find artifact'

# Ends the program with the code that says: not here. Only for what is missing on the machine.
left_out() {
  echo "left out: $1"
  exit 3
}

# Runs a command that asks a registry, once more if it fails.
fetch() {
  local log=$build/fetch.log
  "$@" >"$log" 2>&1 || { sleep 5; "$@" >"$log" 2>&1; } && return
  if grep -qiE "$unreachable" "$log"; then left_out 'the registry of its packages cannot be reached, or lacks them'; fi
  cat "$log" >&2
  exit 1
}

# Whether version $1 is at least $2.
at_least() {
  [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# Ends `run --prepare`, which is for CI: it prepares while something else needs the time.
prepared() {
  if [ "${1-}" = --prepare ]; then exit 0; fi
}
