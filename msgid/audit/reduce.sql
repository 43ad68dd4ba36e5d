-- The reduction of an audit, step by step: DuckDB and Spark run this text. Words in braces are the names of relations,
-- numbers, or those in which the relations of the engines differ (`Relations.words`).
--
-- placed: the rows of a table that stand in a log, and others with a NULL log: log, off, sent, landed, time.
-- contents: the same rows with their content. Moments are microseconds since 1970.

-- log_words: of each log, 32 offsets in a row, with a mask of those that rows have, and one of those that rows with a
-- time have. The rows in no log are those of the log NULL.
SELECT log, off >> 5 AS word, count(*) AS n, bit_or(CAST(1 AS BIGINT) << CAST(off & 31 AS INT)) AS mask,
    bit_or(CASE WHEN sent IS NOT NULL THEN CAST(1 AS BIGINT) << CAST(off & 31 AS INT) END) AS timed_mask,
    count(sent) AS timed, count(landed) AS dated, min(time) AS first_time, max(time) AS last_time,
    min(landed) AS landed, max(landed) AS last_landed
FROM {placed} GROUP BY log, off >> 5

-- blocks: of each log and block of 65,536 offsets, its ends, and the number of its offsets.
SELECT log, word >> 11 AS block, CAST(sum(n) AS BIGINT) AS n, CAST(sum(timed) AS BIGINT) AS timed,
    CAST(sum(dated) AS BIGINT) AS dated, CAST(sum(bit_count(mask)) AS BIGINT) AS offsets,
    min(word * 32 + bit_count((mask & -mask) - 1)) AS low, max(word * 32 + length(bin(mask)) - 1) AS high,
    min(word * 32 + bit_count((timed_mask & -timed_mask) - 1)) AS timed_low,
    max(word * 32 + length(bin(timed_mask)) - 1) AS timed_high,
    min(first_time) AS first_time, max(last_time) AS last_time, min(landed) AS landed, max(last_landed) AS last_landed
FROM {log_words} GROUP BY log, word >> 11

-- borders: the blocks of a log, each with the end of the block before, and the least landing in later blocks.
SELECT log, block, low, timed_low, lag(high) OVER (PARTITION BY log ORDER BY block) AS high_before,
    max(timed_high) OVER earlier AS timed_before, min(landed) OVER later AS landed_after
FROM {blocks} WHERE log IS NOT NULL
WINDOW earlier AS (PARTITION BY log ORDER BY block ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
    later AS (PARTITION BY log ORDER BY block DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)

-- members: the offsets of the words that lack an offset between two others, or repeat one; later is the mask of the
-- offsets after it.
SELECT log, word * 32 + place AS off, mask >> (place + 1) AS later, n > bit_count(mask) AS is_repeated
FROM {log_words} CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
    (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31)) AS places(place)
WHERE (n > bit_count(mask) OR ((mask + (mask & -mask)) & mask) <> 0) AND ((mask >> place) & 1) = 1

-- steps: the offsets that do not follow the one before by one. A block without a gap has as many offsets as its ends say.
SELECT log, off + 1 + bit_count((later & -later) - 1) AS off, off AS off_before FROM {members}
WHERE later <> 0 AND (later & 1) = 0
UNION ALL
SELECT log, off, off_before
FROM (
    SELECT w.log, word * 32 + bit_count((mask & -mask) - 1) AS off,
        lag(word * 32 + length(bin(mask)) - 1) OVER (PARTITION BY w.log, block ORDER BY word) AS off_before
    FROM {log_words} AS w JOIN {blocks} AS b ON b.log = w.log AND b.block = (w.word >> 11)
    WHERE b.offsets < b.high - b.low + 1
) AS neighbours
WHERE off - off_before > 1
UNION ALL
SELECT log, low, high_before FROM {borders} WHERE low - high_before > 1

-- backwards: the rows of a block whose time is before that of the row before.
SELECT log, off, sent, sent_before, sent_at
FROM (
    SELECT log, off, sent, lag(sent) OVER w AS sent_before, lag(off) OVER w AS sent_at
    FROM {placed} WHERE log IS NOT NULL AND sent IS NOT NULL
    WINDOW w AS (PARTITION BY log, off >> 16 ORDER BY off, sent)
) AS neighbours
WHERE sent < sent_before

-- asked: the messages whose rows are read once more: repeated ones, and those with the first and last time of a block.
SELECT log, off FROM {members} WHERE is_repeated
UNION SELECT log, timed_low FROM {borders} WHERE timed_before IS NOT NULL AND timed_low IS NOT NULL
UNION SELECT log, timed_before FROM {borders} WHERE timed_before IS NOT NULL AND timed_low IS NOT NULL

-- messages: the messages that are asked for, with the number of their rows and of their contents.
SELECT r.log, r.off, count(*) AS n, {contents_of_group} AS contents, min(r.sent) AS sent, min(r.landed) AS landed
FROM {contents} AS r
WHERE r.off IN (SELECT off FROM {asked}) AND EXISTS (SELECT 1 FROM {asked} AS a WHERE a.log = r.log AND a.off = r.off)
GROUP BY r.log, r.off

-- late: the messages that landed after one with a higher offset.
SELECT l.log, l.off, min(coalesce(m.landed, l.landed) - l.landed_after) AS wrong
FROM (
    SELECT n.log, n.off, n.landed, least(n.landed_after, b.landed_after) AS landed_after
    FROM (
        SELECT log, off, landed, off >> 16 AS block, min(landed) OVER (
            PARTITION BY log, off >> 16 ORDER BY off DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS landed_after
        FROM {placed} WHERE log IS NOT NULL
    ) AS n JOIN {borders} AS b ON b.log = n.log AND b.block = n.block
) AS l LEFT JOIN {messages} AS m ON m.log = l.log AND m.off = l.off
WHERE coalesce(m.landed, l.landed) > l.landed_after
GROUP BY l.log, l.off

-- faults: the faults of messages: missing ranges, and single offsets. A gap that is too short to be a loss is a hole.
SELECT CASE WHEN off - off_before - 1 < {shortest} THEN 'holes' ELSE 'missing_offsets' END AS fault,
    log, off_before + 1 AS low, off - 1 AS high, off - off_before - 1 AS n, CAST(0 AS BIGINT) AS wrong
FROM {steps}
UNION ALL
SELECT 'duplicate_messages', log, off, off, n - contents, CAST(0 AS BIGINT) FROM {messages} WHERE n > contents
UNION ALL
SELECT 'conflicting_messages', log, off, off, contents - 1, CAST(0 AS BIGINT) FROM {messages} WHERE contents > 1
UNION ALL
SELECT 'time_backwards', s.log, s.off, s.off, CAST(1 AS BIGINT), coalesce(m.sent, s.sent_before) - s.sent
FROM {backwards} AS s LEFT JOIN {messages} AS m ON m.log = s.log AND m.off = s.sent_at
WHERE s.sent < coalesce(m.sent, s.sent_before)
UNION ALL
SELECT 'time_backwards', b.log, b.timed_low, b.timed_low, CAST(1 AS BIGINT), before.sent - own.sent
FROM {borders} AS b
JOIN {messages} AS own ON own.log = b.log AND own.off = b.timed_low
JOIN {messages} AS before ON before.log = b.log AND before.off = b.timed_before
WHERE own.sent < before.sent
{late_faults}

-- late_faults: the part of the faults that needs landing times.
UNION ALL
SELECT 'late_messages', log, off, off, CAST(1 AS BIGINT), wrong FROM {late}

-- counted: of each fault and log, the sum, the number of ranges, and an example: the largest range, the latest message,
-- or the first one.
SELECT fault, log, total, ranges, low, high, wrong
FROM (
    SELECT fault, log, low, high, wrong, CAST(sum(n) OVER (PARTITION BY fault, log) AS BIGINT) AS total,
        count(*) OVER (PARTITION BY fault, log) AS ranges,
        row_number() OVER (PARTITION BY fault, log ORDER BY CASE fault WHEN 'missing_offsets' THEN n
            WHEN 'late_messages' THEN wrong ELSE 0 END DESC, low) AS place
    FROM {faults}
) AS ranked
WHERE place = 1

-- largest: of each fault, the logs with most.
SELECT fault, log, total, low, high, wrong
FROM (
    SELECT fault, log, total, low, high, wrong,
        row_number() OVER (PARTITION BY fault ORDER BY total DESC, log) AS place
    FROM {counted} WHERE fault <> 'holes'
) AS ranked
WHERE place <= {most}

-- totals: of each fault, the sum, the number of logs and the number of ranges.
SELECT fault, CAST(sum(total) AS BIGINT), count(*), CAST(sum(ranges) AS BIGINT) FROM {counted} GROUP BY fault

-- gaps: the largest missing ranges.
SELECT log, low, high, n FROM {faults} WHERE fault = 'missing_offsets' ORDER BY n DESC, log, low LIMIT {most}

-- logs: the logs, those with most faults first.
SELECT l.log, n, low, high, first_time, last_time, coalesce(missing, 0) AS missing, coalesce(repeated, 0) AS repeated,
    coalesce(conflicts, 0) AS conflicts, coalesce(late, 0) AS late
FROM (
    SELECT log, CAST(sum(n) AS BIGINT) AS n, min(low) AS low, max(high) AS high, min(first_time) AS first_time,
        max(last_time) AS last_time
    FROM {blocks} WHERE log IS NOT NULL GROUP BY log
) AS l LEFT JOIN (
    SELECT log, CAST(sum(CASE WHEN fault = 'missing_offsets' THEN total END) AS BIGINT) AS missing,
        CAST(sum(CASE WHEN fault = 'duplicate_messages' THEN total END) AS BIGINT) AS repeated,
        CAST(sum(CASE WHEN fault = 'conflicting_messages' THEN total END) AS BIGINT) AS conflicts,
        CAST(sum(CASE WHEN fault = 'late_messages' THEN total END) AS BIGINT) AS late
    FROM {counted} GROUP BY log
) AS c ON c.log = l.log
ORDER BY coalesce(missing, 0) + coalesce(repeated, 0) + coalesce(conflicts, 0) + coalesce(late, 0) DESC, n DESC, l.log
LIMIT {most}

-- sums: the number of all rows, of those in no log, and of logs.
SELECT coalesce(CAST(sum(n) AS BIGINT), 0), coalesce(CAST(sum(CASE WHEN log IS NULL THEN n END) AS BIGINT), 0),
    count(DISTINCT log)
FROM {blocks}

-- ids: the rows of a table with IDs: of version 1 the key (all but the last five bits), its part and the place in
-- these bits; of any other value its text, which is NULL or empty for a row without one, and whether it is the
-- canonical text of a UUID (is_uuid). near is the earliest time.

-- words: the version-1 IDs, 32 in a row, with a mask of their places, and their fields. The sequence number of a bit is
-- 32 times the word, and the place of the bit.
SELECT key, part, {node} AS node, {pid} AS pid, {seconds} AS seconds, {word} AS word, mask, n, future, future_place
FROM (
    SELECT key, part, count(*) AS n, bit_or(CAST(1 AS BIGINT) << place) AS mask, CAST(sum(future) AS BIGINT) AS future,
        min(CASE WHEN future = 1 THEN place END) AS future_place
    FROM {ids} WHERE key IS NOT NULL GROUP BY key, part
) AS grouped

-- origins: of each start of a node, which declares the origin, the IDs, the repeated ones and those of the future.
SELECT (node >> 40) & 15 AS declared, CAST(sum(n) AS BIGINT), CAST(sum(n - bit_count(mask)) AS BIGINT),
    CAST(sum(future) AS BIGINT)
FROM {words} GROUP BY (node >> 40) & 15

-- first_future: the first word with an ID from the future.
SELECT node, pid, seconds, word, future_place FROM {words} WHERE future > 0
ORDER BY node, pid, seconds, word, future_place LIMIT 1

-- repeated_words: the words with a repeated ID.
SELECT key, part, node, pid, seconds, word FROM {words} WHERE n > bit_count(mask)

-- repeated_ids: the version-1 IDs that several rows have, and the number of their contents.
SELECT r.key, r.part, r.place, w.node, w.pid, w.seconds, w.word, count(*) AS n, {contents_of_group} AS contents
FROM {id_contents} AS r JOIN {repeated_words} AS w ON w.key = r.key AND w.part = r.part
GROUP BY r.key, r.part, r.place, w.node, w.pid, w.seconds, w.word HAVING count(*) > 1

-- sums_of_repeated: the additional rows with a content that is there, and the additional contents.
SELECT coalesce(CAST(sum(n - contents) AS BIGINT), 0), coalesce(CAST(sum(contents - 1) AS BIGINT), 0) FROM {repeated}

-- first_of_repeated: the first ID with several rows of one content, or with several contents.
SELECT node, pid, seconds, word, place FROM {repeated} WHERE {condition} ORDER BY node, pid, seconds, word, place LIMIT 1

-- generators: the ends of the numbers of each node and pid whose node declares the origin of a function.
SELECT node, pid, (node >> 40) & 15 AS declared,
    min(word * 32 + bit_count((mask & -mask) - 1)) AS lowest, max(word * 32 + length(bin(mask)) - 1) AS highest
FROM {words} WHERE (node >> 40) & 15 IN ({declared}) GROUP BY node, pid

-- foreign: those of them that are a generator's: see is_generator in definitions.
SELECT node, pid FROM {generators}
WHERE highest > lowest AND (declared IN ({derived}) OR (pid > 0 AND lowest < {counted_from_0}))

-- spans: the words of generators.
SELECT node, pid, seconds, word, mask FROM {words} AS f
WHERE (node >> 40) & 15 IN ({counted})
    OR EXISTS (SELECT 1 FROM {foreign} AS g WHERE g.node = f.node AND g.pid = f.pid)

-- positions: the rows whose ID is a position in a log.
SELECT node AS log, (pid << 32) | (word * 32 + place) AS off, CAST(NULL AS BIGINT) AS sent,
    CAST(NULL AS BIGINT) AS landed, seconds * 1000000 AS time
FROM (SELECT {node} AS node, {pid} AS pid, {seconds} AS seconds, {word} AS word, place FROM {ids}
    WHERE key IS NOT NULL) AS p
WHERE (node >> 40) & 15 IN ({position})
    AND NOT EXISTS (SELECT 1 FROM {foreign} AS g WHERE g.node = p.node AND g.pid = p.pid)

-- texts: the other values that are not the canonical text of a UUID, or that several rows have.
SELECT value, coalesce(bool_or(is_uuid), false) AS is_uuid, count(*) AS n, min(near) AS near
FROM {ids} WHERE key IS NULL GROUP BY value HAVING count(*) > 1 OR NOT coalesce(bool_or(is_uuid), false)

-- odd: of the other values, the identities of those that are not the canonical text of a UUID.
SELECT {identity} AS identity, CAST(sum(n) AS BIGINT) AS n, min(near) AS near FROM {texts}
WHERE value <> '' AND NOT is_uuid GROUP BY {identity}

-- uuids: the UUIDs that have another spelling, too.
SELECT value, count(*) AS n FROM {ids} AS i
WHERE key IS NULL AND is_uuid AND EXISTS (SELECT 1 FROM {odd} AS o WHERE o.identity = i.value) GROUP BY value

-- others: the identities of the other values: of all that are no UUID, and of the UUIDs that several rows have.
SELECT identity, CAST(sum(n) AS BIGINT) AS n, min(near) AS near
FROM (
    SELECT identity, n, near FROM {odd}
    UNION ALL SELECT value, n, CAST(NULL AS BIGINT) FROM {uuids}
    UNION ALL SELECT value, n, near FROM {texts} AS t WHERE is_uuid
        AND NOT EXISTS (SELECT 1 FROM {uuids} AS u WHERE u.value = t.value)
) AS spelled
GROUP BY identity

-- number_without: the number of the rows without a value, and of those with an empty one.
SELECT coalesce(CAST(sum(CASE WHEN value IS NULL THEN n END) AS BIGINT), 0),
    coalesce(CAST(sum(CASE WHEN value = '' THEN n END) AS BIGINT), 0) FROM {texts}

-- repeated_others: the other identities that several rows have, and the number of their contents.
SELECT identity, count(*) AS n, {contents_of_group} AS contents
FROM (SELECT CASE WHEN is_uuid THEN value ELSE {identity} END AS identity, content FROM {id_contents}
    WHERE key IS NULL AND value <> '') AS r
WHERE EXISTS (SELECT 1 FROM {others} AS o WHERE o.identity = r.identity AND o.n > 1)
GROUP BY identity

-- first_other: the first identity with several rows of one content, or with several contents.
SELECT min(identity) FROM {repeated} WHERE {condition}

-- orphans: the derived IDs whose parent is the ID of no row.
SELECT key, part, place, node, pid, seconds, word, parent FROM {children} AS c
WHERE parent IS NOT NULL AND (node >> 40) & 15 IN ({derived})
    AND NOT EXISTS (SELECT 1 FROM {foreign} AS g WHERE g.node = c.node AND g.pid = c.pid)
    AND NOT EXISTS (SELECT 1 FROM {identities} AS i WHERE i.identity = c.parent)
