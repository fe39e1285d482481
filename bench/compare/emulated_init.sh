#!/bin/busybox sh
# The init process of the virtual machine in which `bench/counting --kernel` counts (machine.py). It
# starts the server in a control group, sends requests, and reports the CPU time of the group, which
# counts instructions there.
#
# /settings: shell variables. /asked: one line per request type, with fields separated by bars:
# name, seconds of a short run, seconds of a long run, arguments for `grampus bench`. Lines for the
# host begin with "guest:", followed by a word and fields, separated by bars.

TABLE=TestTable
# In virtual seconds, which pass immediately while the machine is idle.
START_PATIENCE_S=120
RUN_PATIENCE_S=600

say() {
    echo "guest:$1"
}

give_up() {
    say "failed|$1"
    for file in /tmp/server.log /tmp/bench.log; do
        [ -e $file ] && tail -n 20 $file
    done
    poweroff -f
}

prepare() {
    /bin/busybox --install -s /bin
    mount -t proc none /proc
    mount -t sysfs none /sys
    mount -t devtmpfs none /dev
    mount -t tmpfs -o size=2g none /tmp
    mount -t cgroup2 none /cgroup || give_up "this kernel has no control groups"
    ifconfig lo 127.0.0.1 up
}

# Runs a command in a control group of its own.
in_group() {
    mkdir -p /cgroup/$1
    sh -c 'echo $$ >/cgroup/$0/cgroup.procs; exec "$@"' "$@"
}

# CPU time of a group in microseconds, including threads that have ended.
spent_us() {
    sed -n 's/^usage_usec //p' /cgroup/$1/cpu.stat
}

# Reports what the server's group spends while a command runs.
spending() {
    kind=$1 of=$2
    shift 2
    before_us=$(spent_us server) before_s=$(cut -d ' ' -f 1 /proc/uptime)
    "$@"
    after_us=$(spent_us server) after_s=$(cut -d ' ' -f 1 /proc/uptime)
    say "$kind|$of|$((after_us - before_us))|$before_s|$after_s|$(tail -n 1 /tmp/bench.json 2>/dev/null)"
}

start_server() {
    in_group server /server --data /tmp/data >/tmp/server.log 2>&1 &
    waited_s=0
    until grep -qs 'is ready' /tmp/server.log; do
        [ $waited_s -lt $START_PATIENCE_S ] || give_up "the server was not ready after $START_PATIENCE_S s"
        waited_s=$((waited_s + 1))
        sleep 1
    done
}

bench() {
    rm -f /tmp/bench.json
    timeout $RUN_PATIENCE_S /generator bench "$@" --table $TABLE --rows $rows --regions $regions --warm-up 0 \
        --zookeeper 127.0.0.1:2181 --json /tmp/bench.json >/tmp/bench.log 2>&1 || give_up "grampus bench $* failed"
}

# Several turns of a short and a long run; the first short run only warms the caches.
ask() {
    name=$1 short_s=$2 long_s=$3 words=$4
    say "step|$name"
    bench $words --seconds $short_s
    for turn in $(seq $turns); do
        spending short "$name" bench $words --seconds $short_s
        spending long "$name" bench $words --seconds $long_s
    done
}

prepare
. /settings
say "clock|$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
in_group short /short
in_group long /long
say "loop|$(spent_us short)|$(spent_us long)"
say "step|start"
start_server
say "step|load"
bench sequentialRead --load --clients 4 --batch 1000
say "step|rest"
sleep $settle_s
spending rest rest sleep $rest_s
while IFS='|' read -r name short_s long_s words; do
    ask "$name" $short_s $long_s "$words" </dev/null
done </asked
say "end"
poweroff -f
