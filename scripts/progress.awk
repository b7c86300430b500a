# Reads what `make test`, `make check` or `make fuzz` prints, and prints of it what is worth reading when all is well, and what
# a failed test said: each stage, each crate, each part of the check, each fuzz target, and the summary at the end.

BEGIN { most = 60 } # lines of one failed test

function tell(line) { print line; fflush() }

/^== .* ==/ { in_failures = 0; tell($0); next }
/Running unittests/ { sub(/^.*target.*\/deps\//, ""); sub(/-[0-9a-f]+\)$/, ""); tell("   " $0); next }
/^mete: (the stage [^ ]+ took|checking|not checked|fuzzing|failed|ending)/ { tell("   " $0); next }

/^failures:$/ { in_failures = 1; next }
/^test result: / { in_failures = 0; next }
/^---- .* stdout ----$/ { said = 0 }
/^error/ { rest_of_error = 12 }
rest_of_error-- > 0 { tell($0); next }
in_failures && said++ < most { tell($0); next }

/^(Failed|Skipped):$/ { in_summary = 1 }
in_summary { tell($0) }
