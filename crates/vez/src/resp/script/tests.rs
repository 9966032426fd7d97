use proptest::prelude::*;

use super::*;

const PLAIN: Answers = Answers { done: Answer::Integer(1), not_ours: Answer::Integer(0), free: Answer::Integer(0) };
const RELEASE: Meaning = Meaning::Release(PLAIN);
const EXPIRE: Meaning = Meaning::Expire { by: By::Milliseconds, answers: PLAIN };

const COMPARE_AND_DELETE: &str = r#"if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end"#;

const REDIS_PY_EXTEND: &str = r#"
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        local expiration = redis.call('pttl', KEYS[1])
        if not expiration then
            expiration = 0
        end
        if expiration < 0 then
            return 0
        end

        local newttl = ARGV[2]
        if ARGV[3] == "0" then
            newttl = ARGV[2] + expiration
        end
        redis.call('pexpire', KEYS[1], newttl)
        return 1
    "#;

const REDLOCK_ACQUIRE: &str = r#"
  -- Return 0 if an entry already exists.
  for i, key in ipairs(KEYS) do
    if redis.call("exists", key) == 1 then
      return 0
    end
  end

  -- Create an entry for each provided key.
  for i, key in ipairs(KEYS) do
    redis.call("set", key, ARGV[1], "PX", ARGV[2])
  end

  -- Return the number of entries added.
  return #KEYS
"#;

const REDLOCK_EXTEND: &str = r#"
  -- Return 0 if an entry exists with a *different* lock value.
  for i, key in ipairs(KEYS) do
    if redis.call("get", key) ~= ARGV[1] then
      return 0
    end
  end

  -- Update the entry for each provided key.
  for i, key in ipairs(KEYS) do
    redis.call("set", key, ARGV[1], "PX", ARGV[2])
  end

  -- Return the number of entries updated.
  return #KEYS
"#;

const REDLOCK_RELEASE: &str = r#"
  local count = 0
  for i, key in ipairs(KEYS) do
    -- Only remove entries for *this* lock value.
    if redis.call("get", key) == ARGV[1] then
      redis.pcall("del", key)
      count = count + 1
    end
  end

  -- Return the number of entries removed.
  return count
"#;

/// What clients were seen to send, and what it means.
fn recorded() -> Vec<(&'static str, Meaning)> {
    let by_set = Meaning::Expire { by: By::Set, answers: PLAIN };
    let or_nil = Answers { not_ours: Answer::Nil, free: Answer::Nil, ..PLAIN };
    vec![
        // The documentation of SET, and with it Laravel, ShedLock, redlock-py, node-redlock, pottery and many others.
        (COMPARE_AND_DELETE, RELEASE),
        // redis-py.
        (
            "local token = redis.call('get', KEYS[1])\nif not token or token ~= ARGV[1] then\nreturn 0\nend
             redis.call('del', KEYS[1])\nreturn 1\n",
            RELEASE,
        ),
        (REDIS_PY_EXTEND, Meaning::Prolong),
        (
            "local token = redis.call('get', KEYS[1])\nif not token or token ~= ARGV[1] then\nreturn 0\nend
             redis.call('pexpire', KEYS[1], ARGV[2])\nreturn 1\n",
            EXPIRE,
        ),
        // redlock of Node.js: 4 and 5 differ in white space only.
        (REDLOCK_ACQUIRE, Meaning::AcquireAll { database: false }),
        (REDLOCK_EXTEND, Meaning::ExtendAll { database: false }),
        (REDLOCK_RELEASE, Meaning::ReleaseAll { database: false }),
        // rslock.
        ("if redis.call(\"GET\", KEYS[1]) == ARGV[1] then return redis.call(\"DEL\", KEYS[1]) else return 0 end", RELEASE),
        (
            "if redis.call(\"get\", KEYS[1]) ~= ARGV[1] then return 0 else
             if redis.call(\"set\", KEYS[1], ARGV[1], \"PX\", ARGV[2]) ~= nil then return 1 else return 0 end end",
            by_set,
        ),
        // redis-semaphore.
        (
            "local key = KEYS[1]\nlocal identifier = ARGV[1]\nif redis.call('get', key) == identifier then
             return redis.call('del', key)\nend\nreturn 0",
            RELEASE,
        ),
        (
            "local key = KEYS[1]\nlocal identifier = ARGV[1]\nlocal lockTimeout = ARGV[2]\nlocal value = redis.call('get', key)
             if value == identifier then redis.call('pexpire', key, lockTimeout) return 1 end return 0",
            EXPIRE,
        ),
        // pottery.
        (
            "if redis.call('get', KEYS[1]) == ARGV[1] then local pttl = redis.call('pttl', KEYS[1])
             return (pttl > 0) and pttl or 0 else return 0 end",
            Meaning::Left { endless: 0, not_ours: 0 },
        ),
        // redsync.
        (
            "local v = redis.call('GET', KEYS[1]) if v == ARGV[1] then return redis.call('DEL', KEYS[1])
             elseif v == false then return -1 else return 0 end",
            Meaning::Release(Answers { free: Answer::Integer(-1), ..PLAIN }),
        ),
        // Spring Integration.
        (
            "local id = redis.call('GET', KEYS[1]) if id == ARGV[1] then redis.call('UNLINK', KEYS[1]) return true end return false",
            Meaning::Release(or_nil),
        ),
        (
            "if (redis.call('GET', KEYS[1]) == ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]); return true; end; return false;",
            Meaning::Expire { by: By::Milliseconds, answers: or_nil },
        ),
        // In seconds.
        (
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('expire', KEYS[1], ARGV[2]) else return 0 end",
            Meaning::Expire { by: By::Seconds, answers: PLAIN },
        ),
    ]
}

#[test]
fn what_libraries_send_is_known() {
    for (script, meaning) in recorded() {
        assert_eq!(Meaning::of(script.as_bytes()), Ok(meaning), "{script}");
    }
    for (script, meaning) in [
        (REDLOCK_ACQUIRE, Meaning::AcquireAll { database: true }),
        (REDLOCK_EXTEND, Meaning::ExtendAll { database: true }),
        (REDLOCK_RELEASE, Meaning::ReleaseAll { database: true }),
    ] {
        let later = script.replace("ARGV[2]", "ARGV[3]").replace("ARGV[1]", "ARGV[2]");
        let script = format!("redis.pcall(\"SELECT\", tonumber(ARGV[1]))\n{later}");
        assert_eq!(Meaning::of(script.as_bytes()), Ok(meaning), "{script}");
    }
}

#[test]
fn how_it_is_written_does_not_matter() {
    let ways: [fn(&str) -> String; 8] = [
        |script| script.split_whitespace().collect::<Vec<_>>().join(" "),
        |script| script.replace('\'', "\""),
        |script| script.replace("\"", "'"),
        |script| script.replace("redis.call", "redis . pcall"),
        |script| format!("--[[ a\nb ]] {script}\n-- the end"),
        |script| script.replace('\n', " -- so\r\n\t"),
        |script| script.replace("token", "a").replace("identifier", "b_1").replace("count", "_").replace("pttl ", "p "),
        |script| script.replace("'get'", "'GET'").replace("\"get\"", "\"Get\"").replace("\"PX\"", "\"px\""),
    ];
    for (script, meaning) in recorded() {
        // Comments are written for those who read lines.
        let plain: String =
            script.lines().map(|line| line.split("--").next().unwrap_or_default().to_owned() + "\n").collect();
        for way in ways {
            let script = way(&plain);
            assert_eq!(Meaning::of(script.as_bytes()), Ok(meaning), "{script}");
        }
    }
}

#[test]
fn what_only_looks_alike_is_not_known() {
    let changes = [
        ("==", "~="),
        ("KEYS[1]", "KEYS[2]"),
        ("ARGV[1]", "ARGV[2]"),
        ("\"get\"", "\"getdel\""),
        ("\"del\",KEYS[1]", "\"del\",KEYS[1],KEYS[2]"),
        ("\"del\"", "\"flushall\""),
        ("return 0", "return 2"),
        ("return redis.call(\"del\",KEYS[1])", "return 1"),
        ("then", "then redis.call(\"del\",KEYS[2])"),
        ("if", "redis.call(\"del\",KEYS[1]) if"),
        ("end", "end redis.call(\"del\",KEYS[1])"),
        ("ARGV[1]", "ARGV[1] or true"),
        ("if ", "if not "),
        ("if ", "local redis = x if "),
        ("if ", "local KEYS = ARGV if "),
        ("redis.call(\"get\",KEYS[1])", "\"x\""),
        ("then\n    return", "then\n    return;"),
        ("end", ""),
        ("end", "end)"),
    ];
    for (from, to) in changes {
        let script = COMPARE_AND_DELETE.replacen(from, to, 1);
        assert_ne!(script, COMPARE_AND_DELETE, "{from}");
        assert_eq!(Meaning::of(script.as_bytes()), Err(NoScript::Unknown), "{script}");
    }
    let changes = [
        (REDIS_PY_EXTEND, "newttl)", "ARGV[2])"),
        (REDIS_PY_EXTEND, "\"0\"", "\"1\""),
        (REDIS_PY_EXTEND, "expiration < 0", "expiration < 1"),
        (REDIS_PY_EXTEND, "+ expiration", "- expiration"),
        (REDLOCK_ACQUIRE, "== 1", "== 0"),
        (REDLOCK_ACQUIRE, "\"set\", key", "\"set\", i"),
        (REDLOCK_ACQUIRE, "ARGV[1], \"PX\", ARGV[2]", "ARGV[2], \"PX\", ARGV[1]"),
        (REDLOCK_ACQUIRE, "#KEYS", "1"),
        (REDLOCK_EXTEND, "~=", "=="),
        (REDLOCK_RELEASE, "count + 1", "count + 2"),
        (REDLOCK_RELEASE, "\"del\", key", "\"del\", KEYS[1]"),
    ];
    for (script, from, to) in changes {
        let changed = script.replacen(from, to, 1);
        assert_ne!(script, changed, "{from}");
        assert_eq!(Meaning::of(changed.as_bytes()), Err(NoScript::Unknown), "{changed}");
    }
    for script in ["", "return 1", "return redis.call('get', KEYS[1])", "while true do end"] {
        assert_eq!(Meaning::of(script.as_bytes()), Err(NoScript::Unknown), "{script}");
    }
}

#[test]
fn arguments_are_what_the_script_makes_of_them() {
    let given = |value, ttl_ms, more| Ok(Given { value, ttl_ms, more });
    assert_eq!(RELEASE.given(1, &["a"]), given(b"a", 0, false));
    assert_eq!(RELEASE.given(1, &["a", "nothing that matters"]), given(b"a", 0, false));
    assert_eq!(EXPIRE.given(1, &["a", "-5"]), given(b"a", -5, false));
    assert_eq!(Meaning::Expire { by: By::Seconds, answers: PLAIN }.given(1, &["a", "2"]), given(b"a", 2000, false));
    assert_eq!(Meaning::Prolong.given(1, &["a", "7", "0"]), given(b"a", 7, true));
    assert_eq!(Meaning::Prolong.given(1, &["a", "7", "1"]), given(b"a", 7, false));
    assert_eq!(Meaning::Take { asked: true, answers: PLAIN }.given(1, &["a", "7", "yes"]), given(b"a", 7, true));
    assert_eq!(Meaning::Take { asked: true, answers: PLAIN }.given(1, &["a", "7", ""]), given(b"a", 7, false));
    assert_eq!(Meaning::Take { asked: false, answers: PLAIN }.given(1, &["a", "7"]), given(b"a", 7, true));
    assert_eq!(Meaning::AcquireAll { database: true }.given(2, &["0", "a", "7"]), given(b"a", 7, false));

    let no = |meaning: Meaning, keys, arguments: &[&str]| meaning.given(keys, arguments).expect_err("it is refused");
    assert_eq!(no(RELEASE, 1, &[]).to_string(), "ERR this script wants a key and 1 arguments or more");
    assert!(matches!(no(Meaning::ReleaseAll { database: false }, 0, &["a"]), NoScript::Arguments { .. }));
    assert_eq!(no(EXPIRE, 1, &["a", "soon"]), NoScript::Number);
    let seconds = Meaning::Expire { by: By::Seconds, answers: PLAIN };
    assert_eq!(no(seconds, 1, &["a", "9223372036854775807"]), NoScript::Number);
    assert_eq!(no(Meaning::Expire { by: By::Set, answers: PLAIN }, 1, &["a", "0"]), NoScript::Time);
    assert_eq!(no(Meaning::AcquireAll { database: false }, 1, &["a", "-1"]), NoScript::Time);
    assert_eq!(no(Meaning::ReleaseAll { database: true }, 1, &["1", "a"]), NoScript::Database);
}

#[test]
fn a_script_is_found_by_its_sum() {
    let mut scripts = Scripts::default();
    let sum = "a4e8783852e6b949f9ef3a97212805108459a890";
    assert_eq!(scripts.find(parse_sum(sum.as_bytes())), Err(NoScript::NoMatch));
    assert_eq!(scripts.load(REDIS_PY_EXTEND.as_bytes()), Ok((sum.into(), Meaning::Prolong)));
    assert_eq!(scripts.find(parse_sum(sum.as_bytes())), Ok(Meaning::Prolong));
    assert_eq!(scripts.find(parse_sum(sum.to_ascii_uppercase().as_bytes())), Ok(Meaning::Prolong));
    for wrong in ["", "a4", &sum[1..], &sum.replace('a', "g"), &format!("{sum}00")] {
        assert_eq!(scripts.find(parse_sum(wrong.as_bytes())), Err(NoScript::NoMatch), "{wrong}");
    }
    assert_eq!(scripts.load(b"return 1"), Err(NoScript::Unknown));
    scripts.flush();
    assert_eq!(scripts.find(parse_sum(sum.as_bytes())), Err(NoScript::NoMatch));
}

#[test]
fn the_oldest_is_forgotten_first() {
    let mut scripts = Scripts::default();
    let sums: Vec<String> = (0..=MOST_SCRIPTS)
        .map(|number| scripts.load(format!("{COMPARE_AND_DELETE} -- {number}").as_bytes()).expect("it is known").0)
        .collect();
    assert_eq!(scripts.find(parse_sum(sums[0].as_bytes())), Err(NoScript::NoMatch));
    assert!(sums[1..].iter().all(|sum| scripts.find(parse_sum(sum.as_bytes())) == Ok(RELEASE)));
    assert_eq!(scripts.order.len(), scripts.known.len());
}

/// A script that was sent, with some bytes changed, left out or put in.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    (prop::sample::select(recorded()), prop::collection::vec(change, 0..8)).prop_map(|((script, _), changes)| {
        let mut bytes = script.as_bytes().to_vec();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn nothing_that_is_sent_is_too_much(script in prop_oneof![damaged(), any::<Vec<u8>>()]) {
        if let Ok(meaning) = Meaning::of(&script) {
            let _ = meaning.given(1, &[&script[..], b"0", &script]);
        }
        let _ = Scripts::default().find(parse_sum(&script));
    }
}
