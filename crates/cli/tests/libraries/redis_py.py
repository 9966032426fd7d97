"""The lock class of redis-py, unchanged, against the nodes of a cluster.

    redis_py.py host:port,host:port,…              all that it does, and one line `ok: N checks`
    redis_py.py --kill host:port,host:port,…       takes a lock at the first node, says `holding`, waits for a line on
                                                   standard input (that node is dead then) and goes on at the others
    redis_py.py --kept host:port,host:port,…       the same, and what was acquired at the first node is still its owner's

The first check that fails is told on standard error, and the exit code is 1.
"""

import logging
import os
import sys
import tempfile
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.exceptions import LockError, LockNotOwnedError
from redis.retry import Retry

# Whatever takes longer does not come at all.
LONG = 30
# How long a lock lasts that is not released because its node was killed.
PX = 3
checks = 0


def check(is_so, sentence):
    global checks
    checks += 1
    if not is_so:
        sys.exit(f"redis-py: {sentence}")


def raises(kind, sentence, job, *arguments, **options):
    try:
        job(*arguments, **options)
    except kind as error:
        check(type(error) is kind, f"{sentence}, not {type(error).__name__}: {error}")
    else:
        check(False, f"{sentence}, and nothing was raised")


def client(address, **options):
    """A client as most have it. It does not try again by itself: what is shown is what the node answers."""
    host, port = address.rsplit(":", 1)
    return redis.Redis(host, int(port), retry=Retry(NoBackoff(), 0), socket_timeout=LONG, **options)


def name(what):
    """One that no earlier run has used."""
    return f"redis-py/{os.getpid()}/{what}"


def is_endless(client, key):
    # Redis keeps it for ever. Vez keeps nothing for ever, since nobody could be told that it is lost: a minute, by default.
    left = client.pttl(key)
    return left == -1 or 50_000 < left <= 60_000


def commands(here, there):
    key = name("commands")
    check(here.set(key, "a", nx=True) is True, "SET NX gives a name that is free")
    check(there.set(key, "b", nx=True) is None, "SET NX does not give one that is taken")
    check(there.get(key) == b"a", "GET answers the value that was set at another node")
    check(there.exists(key) == 1, "EXISTS counts a name that is taken")
    check(is_endless(there, key), "a lock that was given no time has none, or the longest that there is")
    check(there.pexpire(key, 20_000) is True, "PEXPIRE gives it a time")
    check(10_000 < here.pttl(key) <= 20_000 and 10 <= here.ttl(key) <= 20, "PTTL and TTL tell what is left of it")
    check(there.delete(key) == 1, "DEL deletes it, from any node")
    check(here.delete(key) == 0 and here.exists(key) == 0, "it is gone then")
    check(here.get(key) is None and here.ttl(key) == -2 and here.pttl(key) == -2, "and nothing is left of it")
    check(here.pexpire(key, 1000) is False, "PEXPIRE does nothing for a name that is free")
    check(here.set(key, b"\x00\r\n\xff", nx=True, px=20_000) is True, "a value may be any bytes")
    check(there.get(key) == b"\x00\r\n\xff", "and comes back as it was")
    check(there.delete(key) == 1, "it is deleted")


def scripts(here):
    known = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
    sha = here.script_load(known)
    check(here.script_exists(sha, "0" * 40) == [True, False], "SCRIPT EXISTS tells what was loaded from what was not")
    check(here.evalsha(sha, 1, name("scripts"), "a") == 0, "EVALSHA runs what was loaded")
    check(here.eval(known, 1, name("scripts"), "a") == 0, "EVAL runs what is sent")
    raises(redis.exceptions.NoScriptError, "EVALSHA refuses what was not loaded", here.evalsha, "0" * 40, 0)
    check(here.script_flush() is True, "SCRIPT FLUSH is answered")


def acquire_and_release(here, there):
    # One that has been refused may be refused for some milliseconds more, until its node hears of the release.
    mine, other = here.lock(name("plain"), timeout=20), there.lock(name("plain"), timeout=20, sleep=0.02)
    check(not mine.locked() and not mine.owned(), "a lock that nobody has is not locked")
    check(mine.acquire(), "it is acquired")
    check(mine.locked() and mine.owned(), "it is locked and owned then")
    check(other.locked() and not other.owned(), "another sees it locked, and not its own")
    check(not other.acquire(blocking=False), "another does not get it")
    raises(LockError, "one who has not acquired cannot release", other.release)
    mine.release()
    check(not other.locked() and not mine.owned(), "after the release it is neither locked nor owned")
    raises(LockError, "a second release is an error", mine.release)
    check(other.acquire(blocking_timeout=LONG), "another gets it then")
    other.release()
    check(mine.acquire(token="a token of our own") and here.get(mine.name) == b"a token of our own", "a token is kept")
    mine.release()


def foreign(here, there):
    mine, other = here.lock(name("foreign"), timeout=20), there.lock(name("foreign"), timeout=20)
    check(mine.acquire(), "it is acquired")
    there.delete(mine.name)
    check(other.acquire(blocking=False), "what was deleted another can have")
    raises(LockNotOwnedError, "what has become another's cannot be extended", mine.extend, 5)
    raises(LockNotOwnedError, "nor reacquired", mine.reacquire)
    raises(LockNotOwnedError, "nor released", mine.release)
    check(other.owned(), "and the other still has it")
    other.release()


def times(here, there):
    mine = here.lock(name("times"), timeout=10)
    check(mine.acquire(), "it is acquired")
    check(5_000 < there.pttl(mine.name) <= 10_000, "its time is the timeout")
    check(mine.extend(10), "it is extended")
    check(15_000 < there.pttl(mine.name) <= 20_000, "what is added comes on top of what is left")
    check(mine.extend(40, replace_ttl=True), "it is extended otherwise")
    check(35_000 < there.pttl(mine.name) <= 40_000, "what replaces does not")
    check(mine.reacquire(), "it is reacquired")
    check(5_000 < there.pttl(mine.name) <= 10_000, "its time is the timeout again")
    mine.release()
    raises(LockError, "what was released cannot be extended", mine.extend, 5)
    raises(LockError, "nor reacquired", mine.reacquire)
    endless = here.lock(name("endless"))
    check(endless.acquire() and is_endless(there, endless.name), "without a timeout it has no time, or the longest")
    raises(LockError, "and none to extend", endless.extend, 5)
    raises(LockError, "nor to begin anew", endless.reacquire)
    endless.release()


def expiry(here, there):
    mine, other = here.lock(name("expiry"), timeout=1), there.lock(name("expiry"), timeout=20, sleep=0.02)
    begin = time.monotonic()
    check(mine.acquire(), "it is acquired")
    check(other.acquire(blocking_timeout=LONG), "once its time is over another gets it")
    check(time.monotonic() - begin > 0.95, "and not before")
    check(not mine.owned(), "whose time is over has it no longer")
    raises(LockNotOwnedError, "and cannot release it", mine.release)
    check(other.owned(), "which does nothing to the other")
    other.release()


def blocking(here, there):
    mine, other = here.lock(name("blocking"), timeout=20), there.lock(name("blocking"), timeout=20, sleep=0.02)
    check(mine.acquire(), "it is acquired")
    begin = time.monotonic()
    check(not other.acquire(blocking_timeout=0.3), "one who waits for a while does not get it")
    check(time.monotonic() - begin < LONG, "and does not wait for ever")
    check(not there.lock(name("blocking"), blocking=False).acquire(), "one who does not wait does not get it")
    mine.release()
    check(other.acquire(blocking_timeout=LONG), "one who waits gets it after the release")
    other.release()
    free = there.lock(name("blocking, free"), timeout=20)
    check(free.acquire(blocking_timeout=0), "one who may wait for no time gets what is free")
    free.release()


def handed_over(here, there):
    """Without thread-local tokens, whoever has the lock object can release."""
    mine, other = here.lock(name("handed"), timeout=20, thread_local=False), there.lock(name("handed"), timeout=20)
    check(mine.acquire(), "it is acquired")
    release = threading.Timer(0.3, mine.release)
    release.start()
    check(other.acquire(blocking_timeout=LONG), "one who waits gets it once another thread has released it")
    release.join()
    other.release()
    local = here.lock(name("local"), timeout=20)
    check(local.acquire(), "it is acquired")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(getattr(local.local, "token", None)))
    thread.start()
    thread.join()
    check(seen == [None], "with them, another thread has no token of it")
    local.release()


def context(here, there):
    with here.lock(name("context"), timeout=20) as mine:
        check(mine.owned(), "inside it is owned")

        def enter():
            with there.lock(name("context"), timeout=20, blocking_timeout=0.1):
                check(False, "nobody else is inside")

        raises(LockError, "another does not get inside", enter)
    check(not there.lock(name("context")).locked(), "outside it is not locked")
    try:
        with here.lock(name("context"), timeout=20):
            raise KeyError
    except KeyError:
        check(not there.lock(name("context")).locked(), "nor after an exception")

    def lose():
        with here.lock(name("context"), timeout=20):
            there.delete(name("context"))

    raises(LockNotOwnedError, "who has lost it meanwhile is told", lose)
    logging.disable()
    with here.lock(name("context"), timeout=20, raise_on_release_error=False):
        there.delete(name("context"))
    check(True, "or is not, if that is what was asked for")


def crowd(addresses):
    """Reads and writes a file under the lock, from several threads at several nodes: nobody's count may be lost."""
    each, threads = 8, []
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("0")

    def work(address):
        with client(address) as mine:
            for _ in range(each):
                with mine.lock(name("crowd"), timeout=20, sleep=0.005):
                    with open(file.name) as before:
                        count = int(before.read())
                    time.sleep(0.001)
                    with open(file.name, "w") as after:
                        after.write(str(count + 1))

    for address in addresses * 2:
        threads.append(threading.Thread(target=work, args=[address], daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(LONG)
    with open(file.name) as result:
        count = int(result.read())
    os.unlink(file.name)
    check(count == each * len(threads), f"of {each * len(threads)} that counted under the lock, {count} are left")


def everything(addresses):
    here, there = client(addresses[0]), client(addresses[-1])
    # The older protocol, and answers that are text, for those who want that.
    older = client(addresses[0], protocol=2, decode_responses=True)
    commands(here, there)
    scripts(here)
    acquire_and_release(here, there)
    acquire_and_release(there, here)
    foreign(here, there)
    times(here, there)
    expiry(here, there)
    blocking(here, there)
    handed_over(here, there)
    context(here, there)
    with older.lock(name("older"), timeout=20) as mine:
        check(mine.owned() and mine.extend(5) and mine.reacquire(), "the older protocol does as well")
    crowd(addresses)
    print(f"ok: {checks} checks")


def patiently(job):
    """What one does when a node goes away: tries until another has taken its place."""
    begin = time.monotonic()
    while True:
        try:
            return job()
        except redis.RedisError:
            if time.monotonic() - begin > LONG:
                raise
            time.sleep(0.05)


def killed(addresses, kept):
    first, second = client(addresses[0]), client(addresses[1])
    own, endless = first.lock(name("own"), timeout=25), first.lock(name("own, endless"))
    if kept:
        check(own.acquire() and endless.acquire(), "two are acquired that are released after the node is gone")
    mine = first.lock(name("killed"), timeout=PX)
    over = time.monotonic() + PX
    check(mine.acquire(), "it is acquired at the node that is killed")
    print("holding", flush=True)
    sys.stdin.readline()

    raises(redis.exceptions.ConnectionError, "the node is gone", first.ping)
    other = second.lock(name("killed"), timeout=20, sleep=0.02)
    check(patiently(lambda: other.acquire(blocking_timeout=LONG)), "after its time another gets it")
    check(time.monotonic() > over, "and not before")
    check(other.extend(5) and other.reacquire() and other.owned(), "at the node that is left it is a lock like any other")
    other.release()
    if kept:
        still_its_own(second, own, endless)
    everything(addresses[1:])


def still_its_own(second, own, endless):
    """A client that goes on with what it has, by another node."""
    own.redis = endless.redis = second
    check(own.owned() and endless.owned(), "what was acquired at a node that is gone is owned still")
    check(own.extend(5) and own.reacquire(), "it is extended and reacquired by another node")
    taken = second.lock(own.name, timeout=20)
    check(not taken.acquire(blocking=False), "nobody else gets it")
    own.release()
    check(taken.acquire(blocking=False), "until it was released, by another node")
    taken.release()
    endless.release()


if __name__ == "__main__":
    addresses = sys.argv[-1].split(",")
    if sys.argv[1] in ["--kill", "--kept"]:
        killed(addresses, sys.argv[1] == "--kept")
    else:
        everything(addresses)
