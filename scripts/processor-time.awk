# Reads lines of /proc/PID/stat. Prints the processor time, in seconds, of the process `root` and of all that it started,
# those that ended among them. `ticks`: the unit of these files in a second.

{
	# A name may have spaces and parentheses in it.
	pid = $1
	sub(/^.*\) /, "")
	parent[pid] = $2
	# Its own in user and in kernel mode, and that of the children that it waited for.
	used[pid] = $12 + $13 + $14 + $15
}

function belongs(pid, depth) {
	for (depth = 0; depth < 1000 && pid in parent; depth++) {
		if (pid == root) return 1
		pid = parent[pid]
	}
	return 0
}

END {
	for (pid in used) {
		if (belongs(pid)) sum += used[pid]
	}
	printf "%d\n", sum / ticks
}
