# shellcheck shell=bash
# Runs the peer under a session daemon of its own. The program that starts this script gives it a
# mount namespace and a process namespace. So files that LTTng leaves in /run or /dev/shm are not
# visible outside, and all processes and files disappear when the script ends.
mount -t tmpfs none /run && mount -t tmpfs none /dev/shm || exit 3
export LTTNG_HOME="$PWD"
{
	lttng-sessiond --no-kernel --background &&
		lttng --no-sessiond create mete --snapshot --output="$PWD/out" &&
		lttng --no-sessiond enable-channel --userspace --overwrite \
			--subbuf-size=262144 --num-subbuf=4 rows &&
		lttng --no-sessiond enable-event --userspace mete_peer:row --channel=rows &&
		lttng --no-sessiond start
} >log 2>&1 || exit 4
exec taskset --cpu-list "$1" ./peer
