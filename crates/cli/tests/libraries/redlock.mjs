// The npm package redlock, unchanged, over ioredis, against the nodes of a cluster: version 4, which is what the registry calls
// the latest, and version 5, which has been about to come for years and is what most have.
//
//     redlock.mjs folder host:port,host:port,…            all that they do, and one line `ok: N checks`
//     redlock.mjs folder --kill host:port,host:port,…     takes a lock at the first node, says `holding`, waits for a line on
//                                                         standard input (that node is dead then), goes on at the others
//     redlock.mjs folder --kept host:port,host:port,…     the same, and what was acquired at the first node is still its owner's
//
// The folder is the one that `install` was given. The first check that fails is told on standard error, and the exit code is 1.
//
// A redlock takes one client here. It is made to ask several servers that know nothing of each other, and to count votes; the
// nodes of a cluster are one server, and the second would say what the first has granted already.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { resolve } from "node:path";

const [folder, ...rest] = process.argv.slice(2);
const require = createRequire(resolve(folder, "package.json"));
const Redis = require("ioredis").default;
const Redlock4 = require("redlock");
const Redlock5 = require("redlock5").default;
const { using } = require("bluebird");

// Whatever takes longer does not come at all.
const LONG = 30_000;
// How long a lock lasts that is not released because its node was killed.
const PX = 3000;

let checks = 0;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const name = (what) => `redlock/${process.pid}/${what}`;

function check(isSo, sentence) {
    checks += 1;
    if (!isSo) {
        process.stderr.write(`redlock: ${sentence}\n`);
        process.exit(1);
    }
}

// A job that fails, and how.
async function fails(kind, sentence, job) {
    const error = await job().then(() => null, (error) => error);
    check(error !== null, `${sentence}, and it did not`);
    check(error.name === kind, `${sentence} by ${kind}, not ${error.name}: ${error.message}`);
}

function client(address) {
    const [host, port] = address.split(":");
    // It is not to try for ever what a node that is gone does not answer.
    const client = new Redis({ host, port: Number(port), retryStrategy: () => null, maxRetriesPerRequest: 1 });
    client.on("error", () => {});
    return client;
}

// What both versions do, by the same names.
const four = {
    failure: "LockError",
    create: (client, retryCount, retryDelay) => new Redlock4([client], { retryCount, retryDelay, retryJitter: 5 }),
    release: (lock) => lock.unlock(),
};
const five = {
    failure: "ExecutionError",
    create: (client, retryCount, retryDelay) => new Redlock5([client], { retryCount, retryDelay, retryJitter: 5 }),
    release: (lock) => lock.release(),
};

async function single(version, here, there) {
    const mine = version.create(here, 0, 20);
    const other = version.create(there, 0, 20);
    // One that has been refused may be refused for some milliseconds more, until its node hears of the release.
    const patient = version.create(there, LONG / 20, 20);
    const key = name("single");
    let lock = await mine.acquire([key], 10_000);
    check((await there.get(key)) === lock.value, "the value of a lock is seen at another node");
    check((await there.pttl(key)) > 5000, "and its time");
    await fails(version.failure, "another that wants it fails", () => other.acquire([key], 10_000));
    check((await here.get(key)) === lock.value, "and has taken nothing away");
    lock = await lock.extend(30_000);
    const left = await there.pttl(key);
    check(left > 20_000 && left <= 30_000, `extended by 30 s, it has these, not ${left} ms`);
    await version.release(lock);
    check((await there.exists(key)) === 0, "after the release it is gone");
    await fails(version.failure, "a second release fails", () => version.release(lock));
    await version.release(await patient.acquire([key], 10_000));
}

async function lost(version, here, there) {
    const key = name("lost");
    const lock = await version.create(here, 0, 20).acquire([key], 10_000);
    check((await there.del(key)) === 1, "it is deleted from outside");
    const next = await version.create(there, 0, 20).acquire([key], 10_000);
    await fails(version.failure, "what has become another's is not extended", () => lock.extend(10_000));
    await fails(version.failure, "nor released", () => version.release(lock));
    check((await here.get(key)) === next.value, "and the other still has it");
    await version.release(next);
}

async function several(version, here, there) {
    const [a, b, c] = ["a", "b", "c"].map(name);
    const mine = version.create(here, 0, 20);
    const other = version.create(there, 0, 20);
    let lock = await mine.acquire([a, b], 10_000);
    check((await there.exists(a, b)) === 2, "both are locked");
    await fails(version.failure, "one who wants one of them and another fails", () => other.acquire([b, c], 10_000));
    check((await there.exists(c)) === 0, "and keeps neither");
    lock = await lock.extend(20_000);
    const left = [await there.pttl(a), await there.pttl(b)];
    check(left.every((left) => left > 10_000), `both are extended: ${left}`);
    check((await there.del(a)) === 1, "one is deleted from outside");
    await fails(version.failure, "half of a lock is not extended", () => lock.extend(20_000));
    await fails(version.failure, "nor wholly released", () => version.release(lock));
    check((await there.exists(a, b)) === 0, "but what was left of it is released");
    await version.release(await version.create(there, LONG / 20, 20).acquire([a, b, c], 10_000));
}

async function expiry(version, here, there) {
    const key = name("expiry");
    const begin = Date.now();
    const lock = await version.create(here, 0, 20).acquire([key], 1000);
    const next = await version.create(there, LONG / 20, 20).acquire([key], 10_000);
    check(Date.now() - begin >= 1000, "nobody else gets it before its time is over");
    await fails(version.failure, "whose time is over cannot extend it", () => lock.extend(1000));
    await fails(version.failure, "nor release it", () => version.release(lock));
    check((await here.get(key)) === next.value, "which does nothing to the other");
    await version.release(next);
}

// Reads, waits and writes under the lock, from several clients at several nodes: nobody's count may be lost.
async function crowd(version, addresses) {
    const each = 6;
    let count = 0;
    const work = async (address) => {
        const connection = client(address);
        const redlock = version.create(connection, LONG / 10, 10);
        for (let round = 0; round < each; round += 1) {
            const lock = await redlock.acquire([name("crowd")], 20_000);
            const before = count;
            await sleep(1);
            count = before + 1;
            await version.release(lock);
        }
        await redlock.quit();
    };
    const workers = [...addresses, ...addresses];
    await Promise.all(workers.map(work));
    check(count === each * workers.length, `of ${each * workers.length} that counted under the lock, ${count} are left`);
}

async function disposer(here, there) {
    const key = name("disposer");
    await using(four.create(here, 0, 20).disposer(key, 10_000), async (lock) => {
        check((await there.get(key)) === lock.value, "inside, it is locked");
    });
    check((await there.exists(key)) === 0, "outside it is not");
}

async function extendsItself(here, there) {
    const key = name("using");
    const redlock = new Redlock5([here], { retryCount: 0, automaticExtensionThreshold: 700 });
    let value;
    await redlock.using([key], 1000, async (signal) => {
        value = await there.get(key);
        for (let round = 0; round < 25; round += 1) {
            check(!signal.aborted && (await there.get(key)) === value, "it is extended for as long as the routine takes");
            await sleep(100);
        }
    });
    check(value !== null && (await there.exists(key)) === 0, "and released at its end");
    let told = false;
    await redlock
        .using([key], 1000, async (signal) => {
            await there.del(key);
            const begin = Date.now();
            while (!signal.aborted && Date.now() - begin < LONG) await sleep(20);
            told = signal.aborted;
        })
        .catch(() => {});
    check(told, "a routine that has lost its lock is told");
}

async function everything(addresses) {
    const here = client(addresses[0]);
    const there = client(addresses.at(-1));
    for (const version of [four, five]) {
        await single(version, here, there);
        await single(version, there, here);
        await lost(version, here, there);
        await several(version, here, there);
        await expiry(version, here, there);
        await crowd(version, addresses);
    }
    await disposer(here, there);
    await extendsItself(here, there);
    here.disconnect();
    there.disconnect();
    console.log(`ok: ${checks} checks`);
}

// What one does when a node goes away: tries until another has taken its place.
async function patiently(job) {
    const begin = Date.now();
    for (;;) {
        try {
            return await job();
        } catch (error) {
            if (Date.now() - begin > LONG) throw error;
            await sleep(50);
        }
    }
}

async function killed(addresses, kept) {
    const first = client(addresses[0]);
    const keys = [name("killed"), name("killed too")];
    const own = kept ? await five.create(first, 0, 20).acquire([name("own"), name("own too")], 25_000) : null;
    const over = Date.now() + PX;
    await four.create(first, 0, 20).acquire(keys, PX);
    console.log("holding");
    for await (const _ of createInterface({ input: process.stdin })) break;

    await fails("Error", "the node is gone: a request fails", () => first.ping());
    const second = client(addresses[1]);
    const redlock = five.create(second, LONG / 20, 20);
    let lock = await patiently(() => redlock.acquire(keys, 20_000));
    check(Date.now() >= over, "nobody else gets it before its time is over");
    lock = await lock.extend(20_000);
    await lock.release();
    if (own) {
        const other = five.create(second, 0, 20);
        await fails("ExecutionError", "what was acquired at a node that is gone is kept", () => other.acquire([name("own")], 1000));
        const still = await redlock.extend(own, 20_000);
        await still.release();
        await other.release(await other.acquire([name("own"), name("own too")], 10_000));
    }
    second.disconnect();
    await everything(addresses.slice(1));
}

const addresses = rest.at(-1).split(",");
const job = rest[0].startsWith("--") ? killed(addresses, rest[0] === "--kept") : everything(addresses);
await job.catch((error) => check(false, `what should succeed does not: ${error.stack}`));
process.exit(0);
