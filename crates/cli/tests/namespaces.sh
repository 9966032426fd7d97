#!/usr/bin/env bash
# Three nodes, each in a network namespace of its own, and a partition made by dropped packets: what the tests do by a proxy, by
# the kernel. It wants root, `ip` and `nft`, and takes the path of vez:
#
#   cargo build --release && sudo crates/cli/tests/namespaces.sh target/release/vez
set -euo pipefail

vez=$(realpath "${1:?the path of vez}")
lease_ms=1500
folder=$(mktemp -d)
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

cut() { in_node "$alone" nft -f - <<<'table inet cut { chain in { type filter hook input priority 0; iif != lo drop; }; chain out { type filter hook output priority 0; oif != lo drop; }; }'; }
heal() { in_node "$alone" nft delete table inet cut; }

cut
begin=$(date +%s%N)
say "node $alone is cut off, which holds t"
code=0
wait "$holder" || code=$?
[[ $code == 75 ]] || fail "the command on node $alone ended with $code"
say "its command was ended after $((($(date +%s%N) - begin) / 1000000)) ms: the lock is lost, exit code 75"
in_node "$one" "$vez" lock -w 30 t true || fail "the majority does not go on"
say "node $one has t after $((($(date +%s%N) - begin) / 1000000)) ms, with leases of $lease_ms ms"
for _ in $(seq 20); do
    in_node "$alone" "$vez" lock -w 0.05 warm true 2>/dev/null && fail "the minority has granted something"
    sleep 0.05
done
say "node $alone grants nothing, not even what it used last"
heal
say "the cable is back"
until_so in_node "$alone" "$vez" status
in_node "$alone" "$vez" lock -w 30 t true || fail "it does not come back"
say "node $alone is a member again, and gets t"
