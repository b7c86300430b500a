#!/bin/bash
# Compiles as it is told, with METE_INSTRUMENTED's options too where the result runs in a fuzz target. Cargo calls it for
# scripts/fuzz.sh.
#
#   scripts/fuzz-rustc.sh RUSTC ARGUMENT…
#
# Left as they are: programs that take part in building, which have no --target, and Arrow and Parquet. They are large,
# nothing here is to be found in them, and instrumented they take longer to compile than all else.
case " $* " in
*" --target "*) ;;
*) exec "$@" ;;
esac
case ${CARGO_PKG_NAME:-} in
arrow* | parquet) exec "$@" ;;
esac
read -ra instrumented <<<"${METE_INSTRUMENTED:-}"
exec "$@" "${instrumented[@]}"
