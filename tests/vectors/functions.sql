-- What `spark_ext.register` runs, written by: pytest tests/unit/test_sql_functions.py --update-golden
-- Shortened: a table of 256 entries is its ends and the CRC-32 of its entries, and
-- <text x> is (CASE WHEN (typeof(x) = 'binary') THEN hex(x) ELSE CAST(x AS string) END).

CREATE OR REPLACE TEMPORARY FUNCTION msgid_word(raw BINARY)
RETURN (
 (
  (
   get(
    array(/* 256 entries: 2634733933L to 1148892002L; CRC-32 FB7C9683 */),
    CAST((shiftright(crc32(msgid_word.raw), 0) & 255) AS int)
   )
   ^ get(
    array(/* 256 entries: 0L to 1240303978L; CRC-32 2B226413 */),
    CAST((shiftright(crc32(msgid_word.raw), 8) & 255) AS int)
   )
  )
  ^ get(
   array(/* 256 entries: 0L to 297520441L; CRC-32 4E0876D8 */),
   CAST((shiftright(crc32(msgid_word.raw), 16) & 255) AS int)
  )
 )
 ^ get(
  array(/* 256 entries: 0L to 3822258382L; CRC-32 1A172115 */),
  CAST((shiftright(crc32(msgid_word.raw), 24) & 255) AS int)
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_position(source STRING, offset BIGINT, at TIMESTAMP)
RETURN (
 CASE
 WHEN (NOT (CAST(msgid_position.offset AS bigint) BETWEEN 0 AND 281474976710655L))
 THEN raise_error(
  concat(
   'offset must be 0 to 281474976710655, not ',
   coalesce(CAST(CAST(msgid_position.offset AS bigint) AS string), 'NULL')
  )
 )
 ELSE concat(
  concat(
   concat('01', substring(upper(sha2(CAST(msgid_position.source AS string), 256)), 1, 1), 'B'),
   substring(upper(sha2(CAST(msgid_position.source AS string), 256)), 2, 10)
  ),
  substring(hex((shiftright(CAST(msgid_position.offset AS bigint), 32) | 65536)), 2, 4),
  substring(
   hex((((unix_seconds(CAST(msgid_position.at AS timestamp)) - 1609459200) & 4294967295L) | 4294967296L)),
   2,
   8
  ),
  substring(hex(((CAST(msgid_position.offset AS bigint) & 4294967295L) | 4294967296L)), 2, 8)
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_derive(parent STRING, name STRING)
RETURN (
 CASE
 WHEN (
  (
   (
    CASE
    WHEN (
     ((octet_length(<text msgid_derive.parent>) = 34) AND startswith(<text msgid_derive.parent>, '01'))
     OR (
      (octet_length(<text msgid_derive.parent>) IN (34, 58)) AND startswith(<text msgid_derive.parent>, '00')
     )
    )
    THEN true
    ELSE (octet_length(<text msgid_derive.parent>) IN (32, 56))
    END
   )
   AND ((unhex(<text msgid_derive.parent>) IS NOT NULL) OR (<text msgid_derive.parent> IS NULL))
  )
  OR (
   (octet_length(<text msgid_derive.parent>) = 36)
   AND regexp_like(<text msgid_derive.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z')
  )
 )
 THEN concat(
  concat(
   concat(
    '01',
    substring(
     upper(
      sha2(
       concat(
        unhex(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_derive.parent>) IN (34, 58))
           AND startswith(<text msgid_derive.parent>, '00')
          )
          THEN substring(<text msgid_derive.parent>, 3, 56)
          WHEN (
           (octet_length(<text msgid_derive.parent>) = 36)
           AND regexp_like(
            <text msgid_derive.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
           )
          )
          THEN replace(<text msgid_derive.parent>, '-')
          ELSE <text msgid_derive.parent>
          END
         )
        ),
        unhex('00'),
        CAST(CAST(msgid_derive.name AS string) AS binary)
       ),
       256
      )
     ),
     1,
     1
    ),
    'F'
   ),
   substring(
    upper(
     sha2(
      concat(
       unhex(
        (
         CASE
         WHEN (
          (octet_length(<text msgid_derive.parent>) IN (34, 58))
          AND startswith(<text msgid_derive.parent>, '00')
         )
         THEN substring(<text msgid_derive.parent>, 3, 56)
         WHEN (
          (octet_length(<text msgid_derive.parent>) = 36)
          AND regexp_like(
           <text msgid_derive.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
          )
         )
         THEN replace(<text msgid_derive.parent>, '-')
         ELSE <text msgid_derive.parent>
         END
        )
       ),
       unhex('00'),
       CAST(CAST(msgid_derive.name AS string) AS binary)
      ),
      256
     )
    ),
    2,
    10
   )
  ),
  substring(
   upper(
    sha2(
     concat(
      unhex(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_derive.parent>) IN (34, 58))
         AND startswith(<text msgid_derive.parent>, '00')
        )
        THEN substring(<text msgid_derive.parent>, 3, 56)
        WHEN (
         (octet_length(<text msgid_derive.parent>) = 36)
         AND regexp_like(
          <text msgid_derive.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
         )
        )
        THEN replace(<text msgid_derive.parent>, '-')
        ELSE <text msgid_derive.parent>
        END
       )
      ),
      unhex('00'),
      CAST(CAST(msgid_derive.name AS string) AS binary)
     ),
     256
    )
   ),
   12,
   4
  ),
  (
   CASE
   WHEN (
    (
     ((octet_length(<text msgid_derive.parent>) = 34) AND startswith(<text msgid_derive.parent>, '01'))
     AND (octet_length(unhex(<text msgid_derive.parent>)) = 17)
    )
    AND (unhex(<text msgid_derive.parent>) IS NOT NULL)
   )
   THEN substring(upper(<text msgid_derive.parent>), 19, 8)
   ELSE '00000000'
   END
  ),
  substring(
   upper(
    sha2(
     concat(
      unhex(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_derive.parent>) IN (34, 58))
         AND startswith(<text msgid_derive.parent>, '00')
        )
        THEN substring(<text msgid_derive.parent>, 3, 56)
        WHEN (
         (octet_length(<text msgid_derive.parent>) = 36)
         AND regexp_like(
          <text msgid_derive.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
         )
        )
        THEN replace(<text msgid_derive.parent>, '-')
        ELSE <text msgid_derive.parent>
        END
       )
      ),
      unhex('00'),
      CAST(CAST(msgid_derive.name AS string) AS binary)
     ),
     256
    )
   ),
   16,
   8
  )
 )
 WHEN (<text msgid_derive.parent> IS NOT NULL)
 THEN raise_error(
  concat(
   'invalid message id ',
   (
    CASE
    WHEN (length(<text msgid_derive.parent>) <= 64)
    THEN concat('\'', left(<text msgid_derive.parent>, 64), '\'')
    ELSE concat(
     '',
     concat('\'', left(<text msgid_derive.parent>, 64), '\''),
     '... (',
     CAST(length(<text msgid_derive.parent>) AS string),
     ' in all)'
    )
    END
   ),
   ': ',
   coalesce(
    (
     CASE
     WHEN (
      (<text msgid_derive.parent> IS NULL)
      OR (
       (
        CASE
        WHEN (
         ((octet_length(<text msgid_derive.parent>) = 34) AND startswith(<text msgid_derive.parent>, '01'))
         OR (
          (octet_length(<text msgid_derive.parent>) IN (34, 58))
          AND startswith(<text msgid_derive.parent>, '00')
         )
        )
        THEN true
        ELSE (octet_length(<text msgid_derive.parent>) IN (32, 56))
        END
       )
       AND ((unhex(<text msgid_derive.parent>) IS NOT NULL) OR (<text msgid_derive.parent> IS NULL))
      )
     )
     THEN CAST(NULL AS string)
     WHEN (
      NOT (
       (
        ((false OR (length(<text msgid_derive.parent>) = 32)) OR (length(<text msgid_derive.parent>) = 56))
        OR (length(<text msgid_derive.parent>) = 34)
       )
       OR (length(<text msgid_derive.parent>) = 58)
      )
     )
     THEN concat(
      '',
      CAST(length(<text msgid_derive.parent>) AS string),
      ' characters; an id has 32, 34, 56 or 58 hex digits'
     )
     WHEN (unhex(<text msgid_derive.parent>) IS NULL)
     THEN 'not hex digits alone'
     ELSE concat(
      'unknown version ',
      CAST(CAST(conv(left(<text msgid_derive.parent>, 2), 16, 10) AS bigint) AS string),
      ''
     )
     END
    ),
    'no message id'
   ),
   ''
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_derive_at(parent STRING, name STRING, at TIMESTAMP)
RETURN (
 CASE
 WHEN (
  (
   (
    CASE
    WHEN (
     ((octet_length(<text msgid_derive_at.parent>) = 34) AND startswith(<text msgid_derive_at.parent>, '01'))
     OR (
      (octet_length(<text msgid_derive_at.parent>) IN (34, 58))
      AND startswith(<text msgid_derive_at.parent>, '00')
     )
    )
    THEN true
    ELSE (octet_length(<text msgid_derive_at.parent>) IN (32, 56))
    END
   )
   AND ((unhex(<text msgid_derive_at.parent>) IS NOT NULL) OR (<text msgid_derive_at.parent> IS NULL))
  )
  OR (
   (octet_length(<text msgid_derive_at.parent>) = 36)
   AND regexp_like(
    <text msgid_derive_at.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
   )
  )
 )
 THEN concat(
  concat(
   concat(
    '01',
    substring(
     upper(
      sha2(
       concat(
        unhex(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_derive_at.parent>) IN (34, 58))
           AND startswith(<text msgid_derive_at.parent>, '00')
          )
          THEN substring(<text msgid_derive_at.parent>, 3, 56)
          WHEN (
           (octet_length(<text msgid_derive_at.parent>) = 36)
           AND regexp_like(
            <text msgid_derive_at.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
           )
          )
          THEN replace(<text msgid_derive_at.parent>, '-')
          ELSE <text msgid_derive_at.parent>
          END
         )
        ),
        unhex('00'),
        CAST(CAST(msgid_derive_at.name AS string) AS binary)
       ),
       256
      )
     ),
     1,
     1
    ),
    'F'
   ),
   substring(
    upper(
     sha2(
      concat(
       unhex(
        (
         CASE
         WHEN (
          (octet_length(<text msgid_derive_at.parent>) IN (34, 58))
          AND startswith(<text msgid_derive_at.parent>, '00')
         )
         THEN substring(<text msgid_derive_at.parent>, 3, 56)
         WHEN (
          (octet_length(<text msgid_derive_at.parent>) = 36)
          AND regexp_like(
           <text msgid_derive_at.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
          )
         )
         THEN replace(<text msgid_derive_at.parent>, '-')
         ELSE <text msgid_derive_at.parent>
         END
        )
       ),
       unhex('00'),
       CAST(CAST(msgid_derive_at.name AS string) AS binary)
      ),
      256
     )
    ),
    2,
    10
   )
  ),
  substring(
   upper(
    sha2(
     concat(
      unhex(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_derive_at.parent>) IN (34, 58))
         AND startswith(<text msgid_derive_at.parent>, '00')
        )
        THEN substring(<text msgid_derive_at.parent>, 3, 56)
        WHEN (
         (octet_length(<text msgid_derive_at.parent>) = 36)
         AND regexp_like(
          <text msgid_derive_at.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
         )
        )
        THEN replace(<text msgid_derive_at.parent>, '-')
        ELSE <text msgid_derive_at.parent>
        END
       )
      ),
      unhex('00'),
      CAST(CAST(msgid_derive_at.name AS string) AS binary)
     ),
     256
    )
   ),
   12,
   4
  ),
  substring(
   hex((((unix_seconds(CAST(msgid_derive_at.at AS timestamp)) - 1609459200) & 4294967295L) | 4294967296L)),
   2,
   8
  ),
  substring(
   upper(
    sha2(
     concat(
      unhex(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_derive_at.parent>) IN (34, 58))
         AND startswith(<text msgid_derive_at.parent>, '00')
        )
        THEN substring(<text msgid_derive_at.parent>, 3, 56)
        WHEN (
         (octet_length(<text msgid_derive_at.parent>) = 36)
         AND regexp_like(
          <text msgid_derive_at.parent>, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
         )
        )
        THEN replace(<text msgid_derive_at.parent>, '-')
        ELSE <text msgid_derive_at.parent>
        END
       )
      ),
      unhex('00'),
      CAST(CAST(msgid_derive_at.name AS string) AS binary)
     ),
     256
    )
   ),
   16,
   8
  )
 )
 WHEN (<text msgid_derive_at.parent> IS NOT NULL)
 THEN raise_error(
  concat(
   'invalid message id ',
   (
    CASE
    WHEN (length(<text msgid_derive_at.parent>) <= 64)
    THEN concat('\'', left(<text msgid_derive_at.parent>, 64), '\'')
    ELSE concat(
     '',
     concat('\'', left(<text msgid_derive_at.parent>, 64), '\''),
     '... (',
     CAST(length(<text msgid_derive_at.parent>) AS string),
     ' in all)'
    )
    END
   ),
   ': ',
   coalesce(
    (
     CASE
     WHEN (
      (<text msgid_derive_at.parent> IS NULL)
      OR (
       (
        CASE
        WHEN (
         (
          (octet_length(<text msgid_derive_at.parent>) = 34)
          AND startswith(<text msgid_derive_at.parent>, '01')
         )
         OR (
          (octet_length(<text msgid_derive_at.parent>) IN (34, 58))
          AND startswith(<text msgid_derive_at.parent>, '00')
         )
        )
        THEN true
        ELSE (octet_length(<text msgid_derive_at.parent>) IN (32, 56))
        END
       )
       AND ((unhex(<text msgid_derive_at.parent>) IS NOT NULL) OR (<text msgid_derive_at.parent> IS NULL))
      )
     )
     THEN CAST(NULL AS string)
     WHEN (
      NOT (
       (
        (
         (false OR (length(<text msgid_derive_at.parent>) = 32))
         OR (length(<text msgid_derive_at.parent>) = 56)
        )
        OR (length(<text msgid_derive_at.parent>) = 34)
       )
       OR (length(<text msgid_derive_at.parent>) = 58)
      )
     )
     THEN concat(
      '',
      CAST(length(<text msgid_derive_at.parent>) AS string),
      ' characters; an id has 32, 34, 56 or 58 hex digits'
     )
     WHEN (unhex(<text msgid_derive_at.parent>) IS NULL)
     THEN 'not hex digits alone'
     ELSE concat(
      'unknown version ',
      CAST(CAST(conv(left(<text msgid_derive_at.parent>, 2), 16, 10) AS bigint) AS string),
      ''
     )
     END
    ),
    'no message id'
   ),
   ''
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_parse(id STRING)
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(<text msgid_parse.id>) = 34) AND startswith(<text msgid_parse.id>, '01'))
   AND (octet_length(unhex(<text msgid_parse.id>)) = 17)
  )
  AND (unhex(<text msgid_parse.id>) IS NOT NULL)
 )
 THEN named_struct(
  'version',
  1,
  'mac',
  concat(
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_parse.id>), 2, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_parse.id>), 3, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_parse.id>), 4, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_parse.id>), 5, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_parse.id>), 6, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff' to '23'; CRC-32 7389A742 */),
    CAST((crc32(substring(unhex(<text msgid_parse.id>), 7, 1)) & 255) AS int)
   )
  ),
  'pid',
  CAST(shiftright(msgid_word(substring(unhex(<text msgid_parse.id>), 8, 4)), 16) AS int),
  'seconds',
  msgid_word(substring(unhex(<text msgid_parse.id>), 10, 4)),
  'time',
  timestamp_seconds((msgid_word(substring(unhex(<text msgid_parse.id>), 10, 4)) + 1609459200)),
  'sequence',
  msgid_word(substring(unhex(<text msgid_parse.id>), 14, 4)),
  'origin',
  get(
   array(/* 256 entries: 'derived' to 'random'; CRC-32 B83BB4D5 */),
   CAST((crc32(substring(unhex(<text msgid_parse.id>), 2, 1)) & 255) AS int)
  )
 )
 WHEN (<text msgid_parse.id> IS NOT NULL)
 THEN raise_error(
  concat(
   'invalid message id ',
   (
    CASE
    WHEN (length(<text msgid_parse.id>) <= 64)
    THEN concat('\'', left(<text msgid_parse.id>, 64), '\'')
    ELSE concat(
     '',
     concat('\'', left(<text msgid_parse.id>, 64), '\''),
     '... (',
     CAST(length(<text msgid_parse.id>) AS string),
     ' in all)'
    )
    END
   ),
   ': ',
   coalesce(
    (
     CASE
     WHEN (
      (<text msgid_parse.id> IS NULL)
      OR (
       (
        CASE
        WHEN (
         ((octet_length(<text msgid_parse.id>) = 34) AND startswith(<text msgid_parse.id>, '01'))
         OR ((octet_length(<text msgid_parse.id>) IN (34, 58)) AND startswith(<text msgid_parse.id>, '00'))
        )
        THEN true
        ELSE (octet_length(<text msgid_parse.id>) IN (32, 56))
        END
       )
       AND ((unhex(<text msgid_parse.id>) IS NOT NULL) OR (<text msgid_parse.id> IS NULL))
      )
     )
     THEN CAST(NULL AS string)
     WHEN (
      NOT (
       (
        ((false OR (length(<text msgid_parse.id>) = 32)) OR (length(<text msgid_parse.id>) = 56))
        OR (length(<text msgid_parse.id>) = 34)
       )
       OR (length(<text msgid_parse.id>) = 58)
      )
     )
     THEN concat(
      '', CAST(length(<text msgid_parse.id>) AS string), ' characters; an id has 32, 34, 56 or 58 hex digits'
     )
     WHEN (unhex(<text msgid_parse.id>) IS NULL)
     THEN 'not hex digits alone'
     ELSE concat(
      'unknown version ', CAST(CAST(conv(left(<text msgid_parse.id>, 2), 16, 10) AS bigint) AS string), ''
     )
     END
    ),
    'not version 1, which starts with 01 and has 34 hex digits'
   ),
   ''
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_parse(id STRING)
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(<text msgid_try_parse.id>) = 34) AND startswith(<text msgid_try_parse.id>, '01'))
   AND (octet_length(unhex(<text msgid_try_parse.id>)) = 17)
  )
  AND (unhex(<text msgid_try_parse.id>) IS NOT NULL)
 )
 THEN named_struct(
  'version',
  1,
  'mac',
  concat(
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_try_parse.id>), 2, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_try_parse.id>), 3, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_try_parse.id>), 4, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_try_parse.id>), 5, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
    CAST((crc32(substring(unhex(<text msgid_try_parse.id>), 6, 1)) & 255) AS int)
   ),
   get(
    array(/* 256 entries: 'ff' to '23'; CRC-32 7389A742 */),
    CAST((crc32(substring(unhex(<text msgid_try_parse.id>), 7, 1)) & 255) AS int)
   )
  ),
  'pid',
  CAST(shiftright(msgid_word(substring(unhex(<text msgid_try_parse.id>), 8, 4)), 16) AS int),
  'seconds',
  msgid_word(substring(unhex(<text msgid_try_parse.id>), 10, 4)),
  'time',
  timestamp_seconds((msgid_word(substring(unhex(<text msgid_try_parse.id>), 10, 4)) + 1609459200)),
  'sequence',
  msgid_word(substring(unhex(<text msgid_try_parse.id>), 14, 4)),
  'origin',
  get(
   array(/* 256 entries: 'derived' to 'random'; CRC-32 B83BB4D5 */),
   CAST((crc32(substring(unhex(<text msgid_try_parse.id>), 2, 1)) & 255) AS int)
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_is_valid(id STRING)
RETURN (
 (
  CASE
  WHEN (
   ((octet_length(<text msgid_is_valid.id>) = 34) AND startswith(<text msgid_is_valid.id>, '01'))
   OR ((octet_length(<text msgid_is_valid.id>) IN (34, 58)) AND startswith(<text msgid_is_valid.id>, '00'))
  )
  THEN true
  ELSE (octet_length(<text msgid_is_valid.id>) IN (32, 56))
  END
 )
 AND ((unhex(<text msgid_is_valid.id>) IS NOT NULL) OR (<text msgid_is_valid.id> IS NULL))
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_kind(id STRING)
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(<text msgid_kind.id>) = 34) AND startswith(<text msgid_kind.id>, '01'))
   AND (octet_length(unhex(<text msgid_kind.id>)) = 17)
  )
  AND (unhex(<text msgid_kind.id>) IS NOT NULL)
 )
 THEN 'v1'
 ELSE (
  CASE
  WHEN (
   (
    (octet_length(<text msgid_kind.id>) IN (32, 56))
    OR ((octet_length(<text msgid_kind.id>) IN (34, 58)) AND startswith(<text msgid_kind.id>, '00'))
   )
   AND (unhex(<text msgid_kind.id>) IS NOT NULL)
  )
  THEN (
   CASE
   WHEN (
    (
     (
      (CAST(conv(substring(right(<text msgid_kind.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
      AND (CAST(conv(substring(right(<text msgid_kind.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (CAST(conv(substring(right(<text msgid_kind.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L)
    )
    AND (CAST(conv(substring(right(<text msgid_kind.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
   )
   THEN 'v0-ambiguous'
   WHEN (
    (
     (CAST(conv(substring(right(<text msgid_kind.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
     AND (CAST(conv(substring(right(<text msgid_kind.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
    )
    AND (
     NOT (
      (
       (
        (CAST(conv(substring(right(<text msgid_kind.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
        AND (CAST(conv(substring(right(<text msgid_kind.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
       )
       AND (
        CAST(conv(substring(right(<text msgid_kind.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L
       )
      )
      AND (CAST(conv(substring(right(<text msgid_kind.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
     )
    )
   )
   THEN 'v0-broker-offset'
   ELSE 'v0-client-unique'
   END
  )
  END
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_time(id STRING)
RETURN timestamp_seconds(
 (
  msgid_word(
   substring(
    (
     CASE
     WHEN ((octet_length(<text msgid_time.id>) = 34) AND startswith(<text msgid_time.id>, '01'))
     THEN unhex(<text msgid_time.id>)
     END
    ),
    10,
    4
   )
  )
  + 1609459200
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_mac(id STRING)
RETURN concat(
 get(
  array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(<text msgid_mac.id>) = 34) AND startswith(<text msgid_mac.id>, '01'))
       THEN unhex(<text msgid_mac.id>)
       END
      ),
      2,
      1
     )
    )
    & 255
   )
   AS int
  )
 ),
 get(
  array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(<text msgid_mac.id>) = 34) AND startswith(<text msgid_mac.id>, '01'))
       THEN unhex(<text msgid_mac.id>)
       END
      ),
      3,
      1
     )
    )
    & 255
   )
   AS int
  )
 ),
 get(
  array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(<text msgid_mac.id>) = 34) AND startswith(<text msgid_mac.id>, '01'))
       THEN unhex(<text msgid_mac.id>)
       END
      ),
      4,
      1
     )
    )
    & 255
   )
   AS int
  )
 ),
 get(
  array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(<text msgid_mac.id>) = 34) AND startswith(<text msgid_mac.id>, '01'))
       THEN unhex(<text msgid_mac.id>)
       END
      ),
      5,
      1
     )
    )
    & 255
   )
   AS int
  )
 ),
 get(
  array(/* 256 entries: 'ff:' to '23:'; CRC-32 424CBD7C */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(<text msgid_mac.id>) = 34) AND startswith(<text msgid_mac.id>, '01'))
       THEN unhex(<text msgid_mac.id>)
       END
      ),
      6,
      1
     )
    )
    & 255
   )
   AS int
  )
 ),
 get(
  array(/* 256 entries: 'ff' to '23'; CRC-32 7389A742 */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(<text msgid_mac.id>) = 34) AND startswith(<text msgid_mac.id>, '01'))
       THEN unhex(<text msgid_mac.id>)
       END
      ),
      7,
      1
     )
    )
    & 255
   )
   AS int
  )
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_origin(id STRING)
RETURN get(
 array(/* 256 entries: 'derived' to 'random'; CRC-32 B83BB4D5 */),
 CAST(
  (
   crc32(
    substring(
     (
      CASE
      WHEN ((octet_length(<text msgid_origin.id>) = 34) AND startswith(<text msgid_origin.id>, '01'))
      THEN unhex(<text msgid_origin.id>)
      END
     ),
     2,
     1
    )
   )
   & 255
  )
  AS int
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_time_key(id STRING)
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(<text msgid_time_key.id>) = 34) AND startswith(<text msgid_time_key.id>, '01'))
   AND (octet_length(unhex(<text msgid_time_key.id>)) = 17)
  )
  AND (unhex(<text msgid_time_key.id>) IS NOT NULL)
 )
 THEN unhex(
  concat(
   substring(<text msgid_time_key.id>, 19, 8),
   substring(<text msgid_time_key.id>, 27, 8),
   substring(<text msgid_time_key.id>, 3, 12),
   substring(<text msgid_time_key.id>, 15, 4)
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_binary(id STRING)
RETURN (
 CASE
 WHEN (
  (
   CASE
   WHEN (
    ((octet_length(<text msgid_to_binary.id>) = 34) AND startswith(<text msgid_to_binary.id>, '01'))
    OR ((octet_length(<text msgid_to_binary.id>) IN (34, 58)) AND startswith(<text msgid_to_binary.id>, '00'))
   )
   THEN true
   ELSE (octet_length(<text msgid_to_binary.id>) IN (32, 56))
   END
  )
  AND ((unhex(<text msgid_to_binary.id>) IS NOT NULL) OR (<text msgid_to_binary.id> IS NULL))
 )
 THEN unhex(<text msgid_to_binary.id>)
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_binary(id BINARY)
RETURN (
 CASE
 WHEN (
  (
   CASE
   WHEN (
    ((octet_length(<text msgid_from_binary.id>) = 34) AND startswith(<text msgid_from_binary.id>, '01'))
    OR (
     (octet_length(<text msgid_from_binary.id>) IN (34, 58)) AND startswith(<text msgid_from_binary.id>, '00')
    )
   )
   THEN true
   ELSE (octet_length(<text msgid_from_binary.id>) IN (32, 56))
   END
  )
  AND ((unhex(<text msgid_from_binary.id>) IS NOT NULL) OR (<text msgid_from_binary.id> IS NULL))
 )
 THEN upper(<text msgid_from_binary.id>)
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_uuid(id STRING)
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(<text msgid_to_uuid.id>) = 34) AND startswith(<text msgid_to_uuid.id>, '01'))
   AND (octet_length(unhex(<text msgid_to_uuid.id>)) = 17)
  )
  AND (unhex(<text msgid_to_uuid.id>) IS NOT NULL)
 )
 THEN concat_ws(
  '-',
  substring(lower(substring(<text msgid_to_uuid.id>, 3, 32)), 1, 8),
  substring(lower(substring(<text msgid_to_uuid.id>, 3, 32)), 9, 4),
  substring(lower(substring(<text msgid_to_uuid.id>, 3, 32)), 13, 4),
  substring(lower(substring(<text msgid_to_uuid.id>, 3, 32)), 17, 4),
  substring(lower(substring(<text msgid_to_uuid.id>, 3, 32)), 21, 12)
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_uuid(uuid STRING)
RETURN (
 CASE
 WHEN (
  (
   (
    (
     (
      (
       (length(<text msgid_from_uuid.uuid>) = 36)
       AND (regexp_replace(<text msgid_from_uuid.uuid>, '[^-]', '') = '----')
      )
      AND (substring(<text msgid_from_uuid.uuid>, 9, 1) = '-')
     )
     AND (substring(<text msgid_from_uuid.uuid>, 14, 1) = '-')
    )
    AND (substring(<text msgid_from_uuid.uuid>, 19, 1) = '-')
   )
   AND (substring(<text msgid_from_uuid.uuid>, 24, 1) = '-')
  )
  AND (unhex(upper(regexp_replace(<text msgid_from_uuid.uuid>, '-', ''))) IS NOT NULL)
 )
 THEN concat('01', upper(regexp_replace(<text msgid_from_uuid.uuid>, '-', '')))
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_parse_v0(id STRING)
RETURN (
 CASE
 WHEN (
  (
   (octet_length(<text msgid_parse_v0.id>) IN (32, 56))
   OR ((octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00'))
  )
  AND (unhex(<text msgid_parse_v0.id>) IS NOT NULL)
 )
 THEN named_struct(
  'kind',
  (
   CASE
   WHEN (
    (
     (
      (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L
     )
    )
    AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
   )
   THEN 'v0-ambiguous'
   WHEN (
    (
     (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
     AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
    )
    AND (
     NOT (
      (
       (
        (
         CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
         AND 65535
        )
        AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
       )
       AND (
        CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L
       )
      )
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
     )
    )
   )
   THEN 'v0-broker-offset'
   ELSE 'v0-client-unique'
   END
  ),
  'host',
  (
   CASE
   WHEN (
    length(
     left(
      (
       CASE
       WHEN (
        (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
       )
       THEN substring(<text msgid_parse_v0.id>, 3, 56)
       ELSE <text msgid_parse_v0.id>
       END
      ),
      (
       length(
        (
         CASE
         WHEN (
          (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
         )
         THEN substring(<text msgid_parse_v0.id>, 3, 56)
         ELSE <text msgid_parse_v0.id>
         END
        )
       )
       - 24
      )
     )
    )
    = 32
   )
   THEN regexp_replace(
    regexp_replace(
     regexp_replace(
      regexp_replace(
       regexp_replace(
        regexp_replace(
         regexp_replace(
          regexp_replace(
           regexp_replace(
            concat(
             regexp_replace(
              lower(
               left(
                (
                 CASE
                 WHEN (
                  (octet_length(<text msgid_parse_v0.id>) IN (34, 58))
                  AND startswith(<text msgid_parse_v0.id>, '00')
                 )
                 THEN substring(<text msgid_parse_v0.id>, 3, 56)
                 ELSE <text msgid_parse_v0.id>
                 END
                ),
                (
                 length(
                  (
                   CASE
                   WHEN (
                    (octet_length(<text msgid_parse_v0.id>) IN (34, 58))
                    AND startswith(<text msgid_parse_v0.id>, '00')
                   )
                   THEN substring(<text msgid_parse_v0.id>, 3, 56)
                   ELSE <text msgid_parse_v0.id>
                   END
                  )
                 )
                 - 24
                )
               )
              ),
              '(.{4})',
              ':$1'
             ),
             ':'
            ),
            ':0{1,3}(?=[0-9a-f])',
            ':'
           ),
           '^(?!.*::)(.*?):(?:0:){8}(.*)$',
           '$1::$2'
          ),
          '^(?!.*::)(.*?):(?:0:){7}(.*)$',
          '$1::$2'
         ),
         '^(?!.*::)(.*?):(?:0:){6}(.*)$',
         '$1::$2'
        ),
        '^(?!.*::)(.*?):(?:0:){5}(.*)$',
        '$1::$2'
       ),
       '^(?!.*::)(.*?):(?:0:){4}(.*)$',
       '$1::$2'
      ),
      '^(?!.*::)(.*?):(?:0:){3}(.*)$',
      '$1::$2'
     ),
     '^(?!.*::)(.*?):(?:0:){2}(.*)$',
     '$1::$2'
    ),
    '^:(?!:)|(?<!:):$',
    ''
   )
   ELSE concat_ws(
    '.',
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_parse_v0.id>, 3, 56)
        ELSE <text msgid_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_parse_v0.id>, 3, 56)
          ELSE <text msgid_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      1,
      2
     ),
     16,
     10
    ),
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_parse_v0.id>, 3, 56)
        ELSE <text msgid_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_parse_v0.id>, 3, 56)
          ELSE <text msgid_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      3,
      2
     ),
     16,
     10
    ),
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_parse_v0.id>, 3, 56)
        ELSE <text msgid_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_parse_v0.id>, 3, 56)
          ELSE <text msgid_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      5,
      2
     ),
     16,
     10
    ),
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_parse_v0.id>, 3, 56)
        ELSE <text msgid_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_parse_v0.id>, 3, 56)
          ELSE <text msgid_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      7,
      2
     ),
     16,
     10
    )
   )
   END
  ),
  'port',
  (
   CASE
   WHEN (
    (
     (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
     AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
    )
    AND (
     NOT (
      (
       (
        (
         CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
         AND 65535
        )
        AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
       )
       AND (
        CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L
       )
      )
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
     )
    )
   )
   THEN CAST(CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) AS int)
   END
  ),
  'offset',
  (
   CASE
   WHEN (
    (
     (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
     AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
    )
    AND (
     NOT (
      (
       (
        (
         CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
         AND 65535
        )
        AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
       )
       AND (
        CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L
       )
      )
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
     )
    )
   )
   THEN CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint)
   END
  ),
  'pid',
  (
   CASE
   WHEN (
    NOT (
     (
      (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 4), 16, 10) AS bigint) AS int)
   END
  ),
  'loader_hash',
  (
   CASE
   WHEN (
    NOT (
     (
      (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 5, 8), 16, 10) AS bigint)
   END
  ),
  'elapsed_ms',
  (
   CASE
   WHEN (
    NOT (
     (
      (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 8), 16, 10) AS bigint)
   END
  ),
  'counter',
  (
   CASE
   WHEN (
    NOT (
     (
      (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
      AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(CAST(conv(substring(right(<text msgid_parse_v0.id>, 24), 21, 4), 16, 10) AS bigint) AS int)
   END
  )
 )
 WHEN (<text msgid_parse_v0.id> IS NOT NULL)
 THEN raise_error(
  concat(
   'invalid message id ',
   (
    CASE
    WHEN (length(<text msgid_parse_v0.id>) <= 64)
    THEN concat('\'', left(<text msgid_parse_v0.id>, 64), '\'')
    ELSE concat(
     '',
     concat('\'', left(<text msgid_parse_v0.id>, 64), '\''),
     '... (',
     CAST(length(<text msgid_parse_v0.id>) AS string),
     ' in all)'
    )
    END
   ),
   ': ',
   coalesce(
    (
     CASE
     WHEN (
      (<text msgid_parse_v0.id> IS NULL)
      OR (
       (
        CASE
        WHEN (
         ((octet_length(<text msgid_parse_v0.id>) = 34) AND startswith(<text msgid_parse_v0.id>, '01'))
         OR (
          (octet_length(<text msgid_parse_v0.id>) IN (34, 58)) AND startswith(<text msgid_parse_v0.id>, '00')
         )
        )
        THEN true
        ELSE (octet_length(<text msgid_parse_v0.id>) IN (32, 56))
        END
       )
       AND ((unhex(<text msgid_parse_v0.id>) IS NOT NULL) OR (<text msgid_parse_v0.id> IS NULL))
      )
     )
     THEN CAST(NULL AS string)
     WHEN (
      NOT (
       (
        ((false OR (length(<text msgid_parse_v0.id>) = 32)) OR (length(<text msgid_parse_v0.id>) = 56))
        OR (length(<text msgid_parse_v0.id>) = 34)
       )
       OR (length(<text msgid_parse_v0.id>) = 58)
      )
     )
     THEN concat(
      '',
      CAST(length(<text msgid_parse_v0.id>) AS string),
      ' characters; an id has 32, 34, 56 or 58 hex digits'
     )
     WHEN (unhex(<text msgid_parse_v0.id>) IS NULL)
     THEN 'not hex digits alone'
     ELSE concat(
      'unknown version ', CAST(CAST(conv(left(<text msgid_parse_v0.id>, 2), 16, 10) AS bigint) AS string), ''
     )
     END
    ),
    'not version 0, but version 1'
   ),
   ''
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_parse_v0(id STRING)
RETURN (
 CASE
 WHEN (
  (
   (octet_length(<text msgid_try_parse_v0.id>) IN (32, 56))
   OR (
    (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
    AND startswith(<text msgid_try_parse_v0.id>, '00')
   )
  )
  AND (unhex(<text msgid_try_parse_v0.id>) IS NOT NULL)
 )
 THEN named_struct(
  'kind',
  (
   CASE
   WHEN (
    (
     (
      (
       CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
       AND 65535
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      CAST(
       conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
      )
      >= 1099511627776L
     )
    )
    AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
   )
   THEN 'v0-ambiguous'
   WHEN (
    (
     (
      CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
      AND 65535
     )
     AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
    )
    AND (
     NOT (
      (
       (
        (
         CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
         AND 65535
        )
        AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
       )
       AND (
        CAST(
         conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
        )
        >= 1099511627776L
       )
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
     )
    )
   )
   THEN 'v0-broker-offset'
   ELSE 'v0-client-unique'
   END
  ),
  'host',
  (
   CASE
   WHEN (
    length(
     left(
      (
       CASE
       WHEN (
        (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
        AND startswith(<text msgid_try_parse_v0.id>, '00')
       )
       THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
       ELSE <text msgid_try_parse_v0.id>
       END
      ),
      (
       length(
        (
         CASE
         WHEN (
          (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
          AND startswith(<text msgid_try_parse_v0.id>, '00')
         )
         THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
         ELSE <text msgid_try_parse_v0.id>
         END
        )
       )
       - 24
      )
     )
    )
    = 32
   )
   THEN regexp_replace(
    regexp_replace(
     regexp_replace(
      regexp_replace(
       regexp_replace(
        regexp_replace(
         regexp_replace(
          regexp_replace(
           regexp_replace(
            concat(
             regexp_replace(
              lower(
               left(
                (
                 CASE
                 WHEN (
                  (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
                  AND startswith(<text msgid_try_parse_v0.id>, '00')
                 )
                 THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
                 ELSE <text msgid_try_parse_v0.id>
                 END
                ),
                (
                 length(
                  (
                   CASE
                   WHEN (
                    (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
                    AND startswith(<text msgid_try_parse_v0.id>, '00')
                   )
                   THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
                   ELSE <text msgid_try_parse_v0.id>
                   END
                  )
                 )
                 - 24
                )
               )
              ),
              '(.{4})',
              ':$1'
             ),
             ':'
            ),
            ':0{1,3}(?=[0-9a-f])',
            ':'
           ),
           '^(?!.*::)(.*?):(?:0:){8}(.*)$',
           '$1::$2'
          ),
          '^(?!.*::)(.*?):(?:0:){7}(.*)$',
          '$1::$2'
         ),
         '^(?!.*::)(.*?):(?:0:){6}(.*)$',
         '$1::$2'
        ),
        '^(?!.*::)(.*?):(?:0:){5}(.*)$',
        '$1::$2'
       ),
       '^(?!.*::)(.*?):(?:0:){4}(.*)$',
       '$1::$2'
      ),
      '^(?!.*::)(.*?):(?:0:){3}(.*)$',
      '$1::$2'
     ),
     '^(?!.*::)(.*?):(?:0:){2}(.*)$',
     '$1::$2'
    ),
    '^:(?!:)|(?<!:):$',
    ''
   )
   ELSE concat_ws(
    '.',
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
         AND startswith(<text msgid_try_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
        ELSE <text msgid_try_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
           AND startswith(<text msgid_try_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
          ELSE <text msgid_try_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      1,
      2
     ),
     16,
     10
    ),
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
         AND startswith(<text msgid_try_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
        ELSE <text msgid_try_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
           AND startswith(<text msgid_try_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
          ELSE <text msgid_try_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      3,
      2
     ),
     16,
     10
    ),
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
         AND startswith(<text msgid_try_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
        ELSE <text msgid_try_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
           AND startswith(<text msgid_try_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
          ELSE <text msgid_try_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      5,
      2
     ),
     16,
     10
    ),
    conv(
     substring(
      left(
       (
        CASE
        WHEN (
         (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
         AND startswith(<text msgid_try_parse_v0.id>, '00')
        )
        THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
        ELSE <text msgid_try_parse_v0.id>
        END
       ),
       (
        length(
         (
          CASE
          WHEN (
           (octet_length(<text msgid_try_parse_v0.id>) IN (34, 58))
           AND startswith(<text msgid_try_parse_v0.id>, '00')
          )
          THEN substring(<text msgid_try_parse_v0.id>, 3, 56)
          ELSE <text msgid_try_parse_v0.id>
          END
         )
        )
        - 24
       )
      ),
      7,
      2
     ),
     16,
     10
    )
   )
   END
  ),
  'port',
  (
   CASE
   WHEN (
    (
     (
      CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
      AND 65535
     )
     AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
    )
    AND (
     NOT (
      (
       (
        (
         CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
         AND 65535
        )
        AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
       )
       AND (
        CAST(
         conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
        )
        >= 1099511627776L
       )
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
     )
    )
   )
   THEN CAST(CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) AS int)
   END
  ),
  'offset',
  (
   CASE
   WHEN (
    (
     (
      CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
      AND 65535
     )
     AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
    )
    AND (
     NOT (
      (
       (
        (
         CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
         AND 65535
        )
        AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
       )
       AND (
        CAST(
         conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
        )
        >= 1099511627776L
       )
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
     )
    )
   )
   THEN CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint)
   END
  ),
  'pid',
  (
   CASE
   WHEN (
    NOT (
     (
      (
       CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
       AND 65535
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 4), 16, 10) AS bigint) AS int)
   END
  ),
  'loader_hash',
  (
   CASE
   WHEN (
    NOT (
     (
      (
       CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
       AND 65535
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 5, 8), 16, 10) AS bigint)
   END
  ),
  'elapsed_ms',
  (
   CASE
   WHEN (
    NOT (
     (
      (
       CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
       AND 65535
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 8), 16, 10) AS bigint)
   END
  ),
  'counter',
  (
   CASE
   WHEN (
    NOT (
     (
      (
       CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
       AND 65535
      )
      AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(
          conv(substring(right(<text msgid_try_parse_v0.id>, 24), 13, 12), 16, 10) AS bigint
         )
         >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
   )
   THEN CAST(CAST(conv(substring(right(<text msgid_try_parse_v0.id>, 24), 21, 4), 16, 10) AS bigint) AS int)
   END
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_translate_v0(id STRING)
RETURN (
 CASE
 WHEN (
  (
   (octet_length(<text msgid_translate_v0.id>) IN (32, 56))
   OR (
    (octet_length(<text msgid_translate_v0.id>) IN (34, 58))
    AND startswith(<text msgid_translate_v0.id>, '00')
   )
  )
  AND (unhex(<text msgid_translate_v0.id>) IS NOT NULL)
 )
 THEN (
  CASE
  WHEN (
   (octet_length(<text msgid_translate_v0.id>) IN (34, 58)) AND startswith(<text msgid_translate_v0.id>, '00')
  )
  THEN upper(<text msgid_translate_v0.id>)
  ELSE concat('00', upper(<text msgid_translate_v0.id>))
  END
 )
 WHEN (<text msgid_translate_v0.id> IS NOT NULL)
 THEN raise_error(
  concat(
   'invalid message id ',
   (
    CASE
    WHEN (length(<text msgid_translate_v0.id>) <= 64)
    THEN concat('\'', left(<text msgid_translate_v0.id>, 64), '\'')
    ELSE concat(
     '',
     concat('\'', left(<text msgid_translate_v0.id>, 64), '\''),
     '... (',
     CAST(length(<text msgid_translate_v0.id>) AS string),
     ' in all)'
    )
    END
   ),
   ': ',
   coalesce(
    (
     CASE
     WHEN (
      (<text msgid_translate_v0.id> IS NULL)
      OR (
       (
        CASE
        WHEN (
         (
          (octet_length(<text msgid_translate_v0.id>) = 34) AND startswith(<text msgid_translate_v0.id>, '01')
         )
         OR (
          (octet_length(<text msgid_translate_v0.id>) IN (34, 58))
          AND startswith(<text msgid_translate_v0.id>, '00')
         )
        )
        THEN true
        ELSE (octet_length(<text msgid_translate_v0.id>) IN (32, 56))
        END
       )
       AND ((unhex(<text msgid_translate_v0.id>) IS NOT NULL) OR (<text msgid_translate_v0.id> IS NULL))
      )
     )
     THEN CAST(NULL AS string)
     WHEN (
      NOT (
       (
        (
         (false OR (length(<text msgid_translate_v0.id>) = 32)) OR (length(<text msgid_translate_v0.id>) = 56)
        )
        OR (length(<text msgid_translate_v0.id>) = 34)
       )
       OR (length(<text msgid_translate_v0.id>) = 58)
      )
     )
     THEN concat(
      '',
      CAST(length(<text msgid_translate_v0.id>) AS string),
      ' characters; an id has 32, 34, 56 or 58 hex digits'
     )
     WHEN (unhex(<text msgid_translate_v0.id>) IS NULL)
     THEN 'not hex digits alone'
     ELSE concat(
      'unknown version ',
      CAST(CAST(conv(left(<text msgid_translate_v0.id>, 2), 16, 10) AS bigint) AS string),
      ''
     )
     END
    ),
    'not version 0, but version 1'
   ),
   ''
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_translate_v0(id STRING)
RETURN (
 CASE
 WHEN (
  (
   (octet_length(<text msgid_try_translate_v0.id>) IN (32, 56))
   OR (
    (octet_length(<text msgid_try_translate_v0.id>) IN (34, 58))
    AND startswith(<text msgid_try_translate_v0.id>, '00')
   )
  )
  AND (unhex(<text msgid_try_translate_v0.id>) IS NOT NULL)
 )
 THEN (
  CASE
  WHEN (
   (octet_length(<text msgid_try_translate_v0.id>) IN (34, 58))
   AND startswith(<text msgid_try_translate_v0.id>, '00')
  )
  THEN upper(<text msgid_try_translate_v0.id>)
  ELSE concat('00', upper(<text msgid_try_translate_v0.id>))
  END
 )
 WHEN (<text msgid_try_translate_v0.id> IS NOT NULL)
 THEN CAST(NULL AS string)
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_v0_time(id STRING, near TIMESTAMP, timezone STRING)
RETURN (
 CASE
 WHEN (
  (
   (
    (octet_length(<text msgid_v0_time.id>) IN (32, 56))
    OR ((octet_length(<text msgid_v0_time.id>) IN (34, 58)) AND startswith(<text msgid_v0_time.id>, '00'))
   )
   AND (unhex(<text msgid_v0_time.id>) IS NOT NULL)
  )
  AND (
   (
    CASE
    WHEN (
     (
      (
       (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
       AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
      )
      AND (
       CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L
      )
     )
     AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
    )
    THEN 'v0-ambiguous'
    WHEN (
     (
      (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1 AND 65535)
      AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
     )
     AND (
      NOT (
       (
        (
         (
          CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 13, 12), 16, 10) AS bigint) >= 1099511627776L
        )
       )
       AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
      )
     )
    )
    THEN 'v0-broker-offset'
    ELSE 'v0-client-unique'
    END
   )
   IN ('v0-client-unique', 'v0-ambiguous')
  )
 )
 THEN timestamp_micros(
  timestampdiff(
   MICROSECOND,
   CAST('1970-01-01 00:00:00' AS timestamp_ntz),
   (
    CASE
    WHEN (
     timestampadd(
      MILLISECOND,
      (
       CASE
       WHEN (
        NOT (
         (
          (
           CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
           AND 65535
          )
          AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
         )
         AND (
          NOT (
           (
            (
             (
              CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
              AND 65535
             )
             AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
            )
            AND (
             CAST(
              conv(substring(right(<text msgid_v0_time.id>, 24), 13, 12), 16, 10) AS bigint
             )
             >= 1099511627776L
            )
           )
           AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
          )
         )
        )
       )
       THEN CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 13, 8), 16, 10) AS bigint)
       END
      ),
      convert_timezone(
       msgid_v0_time.timezone,
       'UTC',
       CAST(
        trunc(
         convert_timezone(
          'UTC',
          msgid_v0_time.timezone,
          timestampadd(
           MICROSECOND,
           unix_micros(CAST(msgid_v0_time.near AS timestamp)),
           CAST('1970-01-01 00:00:00' AS timestamp_ntz)
          )
         ),
         'MM'
        )
        AS timestamp_ntz
       )
      )
     )
     < timestampadd(
      MICROSECOND,
      unix_micros(CAST(msgid_v0_time.near AS timestamp)),
      CAST('1970-01-01 00:00:00' AS timestamp_ntz)
     )
    )
    THEN timestampadd(
     MILLISECOND,
     (
      CASE
      WHEN (
       NOT (
        (
         (
          CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         NOT (
          (
           (
            (
             CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
             AND 65535
            )
            AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
           )
           AND (
            CAST(
             conv(substring(right(<text msgid_v0_time.id>, 24), 13, 12), 16, 10) AS bigint
            )
            >= 1099511627776L
           )
          )
          AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
         )
        )
       )
      )
      THEN CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 13, 8), 16, 10) AS bigint)
      END
     ),
     convert_timezone(
      msgid_v0_time.timezone,
      'UTC',
      CAST(
       trunc(
        convert_timezone(
         'UTC',
         msgid_v0_time.timezone,
         timestampadd(
          MICROSECOND,
          unix_micros(CAST(msgid_v0_time.near AS timestamp)),
          CAST('1970-01-01 00:00:00' AS timestamp_ntz)
         )
        ),
        'MM'
       )
       AS timestamp_ntz
      )
     )
    )
    ELSE timestampadd(
     MILLISECOND,
     (
      CASE
      WHEN (
       NOT (
        (
         (
          CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
          AND 65535
         )
         AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
        )
        AND (
         NOT (
          (
           (
            (
             CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 1, 8), 16, 10) AS bigint) BETWEEN 1
             AND 65535
            )
            AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 9, 4), 16, 10) AS bigint) = 0)
           )
           AND (
            CAST(
             conv(substring(right(<text msgid_v0_time.id>, 24), 13, 12), 16, 10) AS bigint
            )
            >= 1099511627776L
           )
          )
          AND (CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 23, 2), 16, 10) AS bigint) = 0)
         )
        )
       )
      )
      THEN CAST(conv(substring(right(<text msgid_v0_time.id>, 24), 13, 8), 16, 10) AS bigint)
      END
     ),
     convert_timezone(
      msgid_v0_time.timezone,
      'UTC',
      CAST(
       add_months(
        trunc(
         convert_timezone(
          'UTC',
          msgid_v0_time.timezone,
          timestampadd(
           MICROSECOND,
           unix_micros(CAST(msgid_v0_time.near AS timestamp)),
           CAST('1970-01-01 00:00:00' AS timestamp_ntz)
          )
         ),
         'MM'
        ),
        -1
       )
       AS timestamp_ntz
      )
     )
    )
    END
   )
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_message_state(code BIGINT)
RETURN (
 CASE
 WHEN (CAST(msgid_message_state.code AS bigint) IS NULL)
 THEN CAST(NULL AS string)
 WHEN (CAST(msgid_message_state.code AS bigint) = 1)
 THEN 'available'
 WHEN (CAST(msgid_message_state.code AS bigint) = 10)
 THEN 'unavailable'
 WHEN (CAST(msgid_message_state.code AS bigint) = 20)
 THEN 'poisoned'
 WHEN (CAST(msgid_message_state.code AS bigint) = 30)
 THEN 'marked_for_deletion'
 ELSE raise_error(
  concat(
   'invalid message: state ',
   CAST(CAST(msgid_message_state.code AS bigint) AS string),
   ', not 1, 10, 20 or 30'
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_checksum_ok(payload BINARY, checksum BIGINT)
RETURN (crc32(msgid_checksum_ok.payload) = msgid_checksum_ok.checksum);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_iggy_id(id BINARY)
RETURN (
 CASE
 WHEN (length(hex(CAST(msgid_from_iggy_id.id AS binary))) = 32)
 THEN (
  CASE
  WHEN (
   (substring(hex(CAST(msgid_from_iggy_id.id AS binary)), 13, 1) IN ('4', '7'))
   AND (substring(hex(CAST(msgid_from_iggy_id.id AS binary)), 17, 1) IN ('8', '9', 'A', 'B'))
  )
  THEN lower(
   concat_ws(
    '-',
    substring(hex(CAST(msgid_from_iggy_id.id AS binary)), 1, 8),
    substring(hex(CAST(msgid_from_iggy_id.id AS binary)), 9, 4),
    substring(hex(CAST(msgid_from_iggy_id.id AS binary)), 13, 4),
    substring(hex(CAST(msgid_from_iggy_id.id AS binary)), 17, 4),
    substring(hex(CAST(msgid_from_iggy_id.id AS binary)), 21, 12)
   )
  )
  ELSE concat('01', hex(CAST(msgid_from_iggy_id.id AS binary)))
  END
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_is_expired(timestamp TIMESTAMP, expiry BIGINT, now TIMESTAMP)
RETURN (
 CASE
 WHEN (unix_micros(msgid_is_expired.timestamp) IS NOT NULL)
 THEN (
  (
   (
    CASE
    WHEN (coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint)) BETWEEN 0 AND 4294967295L)
    THEN coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint))
    ELSE CAST(
     raise_error(
      concat(
       'expiry must be whole seconds, 0 to 4294967295, not ',
       CAST(coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint)) AS string)
      )
     )
     AS bigint
    )
    END
   )
   <> 0
  )
  AND (
   (
    unix_micros(
     msgid_is_expired.timestamp
    )
    + (
     (
      CASE
      WHEN (coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint)) BETWEEN 0 AND 4294967295L)
      THEN coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint))
      ELSE CAST(
       raise_error(
        concat(
         'expiry must be whole seconds, 0 to 4294967295, not ',
         CAST(coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint)) AS string)
        )
       )
       AS bigint
      )
      END
     )
     * 1000000
    )
   )
   <= unix_micros(msgid_is_expired.now)
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_iggy_id(id STRING)
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(<text msgid_to_iggy_id.id>) = 34) AND startswith(<text msgid_to_iggy_id.id>, '01'))
   AND (octet_length(unhex(<text msgid_to_iggy_id.id>)) = 17)
  )
  AND (unhex(<text msgid_to_iggy_id.id>) IS NOT NULL)
 )
 THEN unhex(substring(<text msgid_to_iggy_id.id>, 3, 32))
 WHEN (
  (
   (octet_length(<text msgid_to_iggy_id.id>) = 36)
   AND (
    octet_length(
     regexp_replace(<text msgid_to_iggy_id.id>, '\\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\\z', '$1$2$3$4$5')
    )
    = 32
   )
  )
  AND (
   unhex(
    regexp_replace(<text msgid_to_iggy_id.id>, '\\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\\z', '$1$2$3$4$5')
   )
   IS NOT NULL
  )
 )
 THEN unhex(
  regexp_replace(<text msgid_to_iggy_id.id>, '\\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\\z', '$1$2$3$4$5')
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_assign()
RETURN coalesce(
 concat(
  get(
   array(/* 256 entries: '01D7D56DE4137900000' to '01D7D56DE4137900FF0'; CRC-32 49D00C85 */),
   CAST((spark_partition_id() | CAST((shiftright(monotonically_increasing_id(), 24) & 256) AS int)) AS int)
  ),
  hex(((monotonically_increasing_id() & 4294967295L) | 797833124904960000L))
 ),
 (
  CASE
  WHEN (shiftright(spark_partition_id(), 8) > 0)
  THEN concat(
   get(
    array(/* 256 entries: '01D7D56DE4137900' to '01D7D56DE41379FF'; CRC-32 F023CAA0 */),
    CAST(shiftright(spark_partition_id(), 8) AS int)
   ),
   get(
    array(/* 256 entries: '000' to 'FF0'; CRC-32 E64339AF */),
    CAST(
     (
      (spark_partition_id() & 255) | CAST((shiftright(monotonically_increasing_id(), 24) & 256) AS int)
     )
     AS int
    )
   ),
   hex(((monotonically_increasing_id() & 4294967295L) | 797833124904960000L))
  )
  END
 ),
 raise_error(
  'assign_id numbers at most 65536 partitions of 4294967296 rows each; in a streaming query use position_id, derive_id or generate_id'
 )
);
