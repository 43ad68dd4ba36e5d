-- The comparison of two tables, step by step: DuckDB and Spark run this text. Words in braces are the names of
-- relations, numbers, or those in which the engines differ. A message is one log and offset, or one ID: these are its key.
--
-- The rows of each side: log, off, id, content, time. The log, and the offset or the ID, are NULL in a row without a
-- key. block is a number of many messages, and hash a number of the compared values: see the words of each engine.

-- blocks: of each block of one side, the number of its rows and the sum of their hashes. Equal messages have equal
-- blocks. The rows without a key are those of the block NULL.
SELECT log, block, count(*) AS n, sum(hash % 4294967296) AS lower, sum(hash >> 32) AS upper,
    min(off) AS low, max(off) AS high, min(time) AS first_time, max(time) AS last_time, count(time) AS timed
FROM (SELECT log, off, {block} AS block, {hash} AS hash, time FROM {side}) AS r
GROUP BY log, block

-- suspects: the blocks in which the sides differ.
SELECT log, block
FROM (
    SELECT log, block, n, lower, upper FROM {sent_blocks} WHERE block IS NOT NULL
    UNION ALL SELECT log, block, -n, -lower, -upper FROM {table_blocks} WHERE block IS NOT NULL
) AS both_sides
GROUP BY log, block HAVING sum(n) <> 0 OR sum(lower) <> 0 OR sum(upper) <> 0

-- counts: the rows of a side, its last time, the rows without a key, their first time and those without a time.
SELECT coalesce(CAST(sum(n) AS BIGINT), 0), max(last_time),
    coalesce(CAST(sum(CASE WHEN block IS NULL THEN n END) AS BIGINT), 0),
    min(CASE WHEN block IS NULL THEN first_time END),
    coalesce(CAST(sum(CASE WHEN block IS NULL THEN n - timed END) AS BIGINT), 0)
FROM {blocks}

-- differing: the messages with a fault, in these blocks. A message that was sent twice may land twice. Of several
-- contents, both sides must have all. The ID is the first of the sent rows, or else of the others.
SELECT fault, log, off, id, CASE WHEN fault = {duplicate} THEN landed - sent ELSE 1 END AS number,
    sent + landed AS n, time
FROM (
    SELECT log, off, id, sent, landed, time, CASE WHEN landed = 0 THEN {lost} WHEN sent = 0 THEN {extra}
        WHEN is_changed = 1 THEN {changed} WHEN landed > sent THEN {duplicate} END AS fault
    FROM (
        SELECT log, min(off) AS off, coalesce(min(sent_id), min(any_id)) AS id, min(time) AS time,
            CAST(sum(of_sent) AS BIGINT) AS sent, CAST(sum(of_table) AS BIGINT) AS landed,
            max(CASE WHEN of_sent = 0 OR of_table = 0 THEN 1 ELSE 0 END) AS is_changed
        FROM (
            SELECT log, off, key_id, sum(is_sent) AS of_sent, sum(1 - is_sent) AS of_table, min(time) AS time,
                min(CASE WHEN is_sent = 1 THEN id END) AS sent_id, min(id) AS any_id
            FROM (
                SELECT log, off, {key_id} AS key_id, {compared_id} AS compared_id, content, id, 1 AS is_sent, time,
                    {block} AS block
                FROM {sent}
                UNION ALL SELECT log, off, {key_id}, {compared_id}, content, id, 0, CAST(NULL AS BIGINT), {block}
                FROM {table}
            ) AS r
            WHERE EXISTS (SELECT 1 FROM {suspects} AS s WHERE s.log = r.log AND s.block = r.block)
            GROUP BY log, off, key_id, compared_id, content
        ) AS of_contents
        GROUP BY log, {key}
    ) AS messages
) AS judged
WHERE fault IS NOT NULL

-- groups: of each fault and log, the messages, what the report counts, their rows, and the least key.
SELECT fault, log, CAST(sum(number) AS BIGINT) AS number, count(*) AS messages, CAST(sum(n) AS BIGINT) AS n,
    min({shown_key}) AS first_key, min(time) AS time, count(*) - count(time) AS untimed
FROM {differing} GROUP BY fault, log

-- largest: of each fault, the logs with most, and the first message of each.
SELECT g.fault, g.log, g.number, g.messages, g.n, d.off, d.id, g.time, g.untimed
FROM (SELECT *, row_number() OVER (PARTITION BY fault ORDER BY number DESC, log) AS place FROM {groups}) AS g
JOIN {differing} AS d ON d.fault = g.fault AND d.log = g.log AND d.{shown_key} = g.first_key
WHERE g.place <= {most}

-- rest: of each fault, the other logs as one.
SELECT fault, CAST(sum(number) AS BIGINT), CAST(sum(messages) AS BIGINT), CAST(sum(n) AS BIGINT), count(*), min(time),
    CAST(sum(untimed) AS BIGINT)
FROM (SELECT *, row_number() OVER (PARTITION BY fault ORDER BY number DESC, log) AS place FROM {groups}) AS g
WHERE place > {most} GROUP BY fault

-- listed: the first messages with a fault.
SELECT fault, log, off, id FROM {differing} ORDER BY fault, log, off, id LIMIT {most}

-- sent_logs: the rows of sent and their ends, of the logs with a fault.
SELECT log, CAST(sum(n) AS BIGINT), min(low), max(high) FROM {sent_blocks} AS b
WHERE EXISTS (SELECT 1 FROM {groups} AS g WHERE g.log = b.log) AND block IS NOT NULL
GROUP BY log ORDER BY log LIMIT {most}

-- digest: of each log and block of 65,536 offsets, the number of its rows, its ends and the sums of the hashes.
SELECT log, off >> 16 AS block, count(*) AS n, min(off) AS low, max(off) AS high, min(time) AS first_time,
    max(time) AS last_time, CAST(sum({lower_half}) AS BIGINT) AS lower, CAST(sum({upper_half}) AS BIGINT) AS upper
FROM {side} GROUP BY log, off >> 16
