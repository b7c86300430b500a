# Reads what scripts/test.sh logged: the output of `cargo test -- --show-output`, stage by stage.
# Prints what failed, what was skipped and why, and the closing line.
#
# A test that cannot run here prints "SKIPPED: reason" or "SKIPPED: its name: reason" and returns;
# to cargo it has passed. What the virtual machines say about a test that was skipped on the host
# replaces what the host said, and a test that ran in one of them was not skipped.

function crashed() {
	if (running) fail("a test program of stage " stage " ended without a result")
	running = 0
}

function fail(what) {
	failures[++failed] = what
	stage_failed = 1
}

function skip(name, reason) {
	if ((stage, name) in seen) return 0
	seen[stage, name] = 1
	if (stage ~ /^vm/) skipped_in_vm[name] = 1
	sub("^" last_part(name) ": ", "", reason)
	skips++
	skip_stage[skips] = stage
	skip_name[skips] = name
	skip_reason[skips] = reason
	return 1
}

# The name in a line "test NAME ... result"; doc tests have spaces in theirs.
function test_name(line) {
	sub(/^test /, "", line)
	sub(/ \.\.\. .*/, "", line)
	return line
}

function last_part(path) {
	sub(/^.*::/, "", path)
	return path
}

/^== .* ==$/ { crashed(); stage = $2; section = ""; stage_failed = in_failures = 0; next }
/^== .* == failed/ { crashed(); if (!stage_failed) fail("stage " stage ": " $NF); next }

/^running [0-9]+ tests?$/ { crashed(); running = 1; in_failures = 0; next }
/^test result: / { running = 0; section = ""; passed += $4; next }
/^successes:$/ { in_failures = 0; section = ""; next }
/^failures:$/ { in_failures = 1; section = ""; next }

/^---- .* stdout ----$/ {
	section = in_failures ? "" : substr($0, 6, length($0) - 17)
	next
}

/^test .* \.\.\. FAILED/ { fail(test_name($0)); next }
/^test .* \.\.\. ignored/ {
	reason = $0
	if (!sub(/^.* ignored, /, "", reason)) reason = "marked as ignored"
	skip(test_name($0), reason)
	next
}
/^test .* \.\.\. ok$/ && stage ~ /^vm/ { ran_in_vm[test_name($0)]++; next }

/SKIPPED: / && !in_failures {
	reason = $0
	sub(/^.*SKIPPED: /, "", reason)
	if (section == "") {
		name = reason
		sub(/: .*/, "", name)
		sub(/^[^:]*: /, "", reason)
		skip(name, reason)
	} else if (skip(section, reason)) {
		passed--
		if (stage ~ /^vm/) ran_in_vm[section]--
	}
}

END {
	crashed()
	if (failed) print "\nFailed:"
	for (i = 1; i <= failed; i++) print "  " failures[i]
	for (i = 1; i <= skips; i++) {
		if (ran_in_vm[skip_name[i]] > 0) continue
		if (skip_stage[i] !~ /^vm/ && skip_name[i] in skipped_in_vm) continue
		if (!skipped++) print "\nSkipped:"
		print "  " skip_name[i] ": " skip_reason[i]
	}
	printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped
}
