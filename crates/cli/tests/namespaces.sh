#!/usr/bin/env bash
# Three nodes, each in a network namespace of its own at one switch, and what can go wrong with a switch: what the tests do by a
# proxy, by the kernel. It wants root and `ip`, and takes the path of vez:
#
#   cargo build --release && sudo crates/cli/tests/namespaces.sh target/release/vez
set -euo pipefail

vez=$(realpath "${1:?the path of vez}")
lease_ms=1500
folder=$(mktemp -d)
export HOME=$folder
pids=()

finish() {
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    for number in 0 1 2 3; do ip netns del "vez-$number" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT

in_node() { ip netns exec "vez-$1" "${@:2}"; }
# For what runs beside: its process is the one that is noted, and ended.
become() { exec ip netns exec "vez-$1" "${@:2}"; }
say() { printf '%s  %s\n' "$(date +%T.%3N)" "$*"; }
fail() { say "FAILED: $*"; exit 1; }

# Waits until a command succeeds.
until_so() {
    for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.05; done
    fail "it is not so, and that for long: $*"
}

# A switch, and three machines at it.
ip netns add vez-0
ip -n vez-0 link add switch type bridge
ip -n vez-0 link set switch up
for number in 1 2 3; do
    ip netns add "vez-$number"
    ip link add "vez-p$number" netns vez-0 type veth peer name eth0 netns "vez-$number"
    ip -n vez-0 link set "vez-p$number" master switch up
    ip -n "vez-$number" address add "10.77.0.$number/24" dev eth0
    ip -n "vez-$number" link set eth0 up
    ip -n "vez-$number" link set lo up
done

for number in 1 2 3; do
    begin=(--join 10.77.0.1:7402)
    [[ $number == 1 ]] && begin=(--bootstrap --lease "${lease_ms}ms")
    become "$number" "$vez" node --id "$number" --data "$folder/$number" --peer "10.77.0.$number:7402" --insecure \
        "${begin[@]}" >"$folder/$number.log" 2>&1 &
    pids+=($!)
    until_so in_node "$number" "$vez" status
done
say "three nodes are ready"

# One of those who do not lead is cut off.
leader=$(in_node 1 "$vez" status --json | sed -n 's/^  "leader": \([0-9]*\),$/\1/p')
alone=$((leader % 3 + 1))
one=$((alone % 3 + 1))
become "$alone" "$vez" lock t -- sleep 600 &
holder=$!
pids+=("$holder")
until_so in_node "$alone" "$vez" show t
in_node "$alone" "$vez" lock warm true

port() { ip -n vez-0 link set "vez-p$1" "${@:2}"; }
since() { echo "$((($(date +%s%N) - begin) / 1000000)) ms"; }

port "$alone" nomaster
begin=$(date +%s%N)
say "the cable of node $alone, which holds t, is pulled out of the switch"
(in_node "$one" "$vez" lock -w 30 t -- sh -c "kill -0 $holder 2>/dev/null && touch $folder/two; date +%s%N >$folder/had") &
majority=$!
# What is asked for there later than a lease after that is not granted, not even what it used last.
(
    late=0
    while ((late < 20)); do
        asked_ms=$((($(date +%s%N) - begin) / 1000000))
        if in_node "$alone" "$vez" lock -w 0.05 warm true 2>/dev/null; then
            ((asked_ms <= lease_ms)) || touch "$folder/granted"
        fi
        ((asked_ms <= lease_ms)) || late=$((late + 1))
        sleep 0.02
    done
) &
minority=$!
code=0
wait "$holder" || code=$?
[[ $code == 75 ]] || fail "the command on node $alone ended with $code"
say "its command was ended after $(since): the lock is lost, exit code 75"
wait "$majority" || fail "the majority does not go on"
[[ ! -e $folder/two ]] || fail "the command on node $alone was still there when node $one had t"
say "node $one had t after $((($(cat "$folder/had") - begin) / 1000000)) ms, with leases of $lease_ms ms"
wait "$minority"
[[ ! -e $folder/granted ]] || fail "the minority has granted something"
says=$(in_node "$alone" "$vez" status || true)
grep -q joining <<<"$says" || fail "node $alone does not say how it is: $says"
say "node $alone grants nothing, and says why: ${says%%$'\n'*}"
port "$alone" master switch
say "the cable is back"
until_so in_node "$alone" "$vez" status
in_node "$alone" "$vez" lock -w 30 t true || fail "it does not come back"
say "node $alone is a member again, and gets t"

# Two do not hear each other any more, and both hear the third.
leader=$(in_node 1 "$vez" status --json | sed -n 's/^  "leader": \([0-9]*\),$/\1/p')
one=$((leader % 3 + 1))
other=$((one % 3 + 1))
views() { in_node "$leader" "$vez" status --json | grep -E '"(node|since_view)":' | sort | md5sum; }
before=$(views)
for number in "$one" "$other"; do port "$number" type bridge_slave isolated on; done
begin=$(date +%s%N)
say "nodes $one and $other do not hear each other any more; both hear node $leader, which leads"
all_served() { for name in $(seq 20); do in_node "$1" "$vez" lock -w 60 "bridge/$name" true || return 1; done; }
for number in "$one" "$other"; do
    (until all_served "$number" 2>/dev/null; do sleep 0.1; done) &
    pids+=($!)
done
one_has_gone() { [[ $(views) != "$before" ]]; }
until_so one_has_gone
say "one of them was let go after $(since)"
all_served "$leader" || fail "node $leader is not served"
wait -n "${pids[@]: -2}" || fail "neither of the two is served"
say "the leader and one of the two were served everything after $(since)"
