-- What `spark_ext.register` runs, written by: pytest tests/unit/test_sql_functions.py --update-golden
-- Shortened: a table of 256 entries is its ends and the CRC-32 of its entries.

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_word(raw BINARY) COMMENT 'Return the body of the SQL function.'
RETURN (
 (
  (
   get(
    CAST(split(/* 256 entries: 2634733933 to 1148892002; CRC-32 5778C88B */) AS array<bigint>),
    CAST((crc32(_msgid_word.raw) & 255) AS int)
   )
   ^ get(
    CAST(split(/* 256 entries: 0 to 1240303978; CRC-32 809FBDF0 */) AS array<bigint>),
    CAST((shiftright(crc32(_msgid_word.raw), 8) & 255) AS int)
   )
  )
  ^ get(
   CAST(split(/* 256 entries: 0 to 297520441; CRC-32 70778421 */) AS array<bigint>),
   CAST((shiftright(crc32(_msgid_word.raw), 16) & 255) AS int)
  )
 )
 ^ get(
  CAST(split(/* 256 entries: 0 to 3822258382; CRC-32 CD52EF8E */) AS array<bigint>),
  CAST((shiftright(crc32(_msgid_word.raw), 24) & 255) AS int)
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v1_fields(
 octet1 INT,
 octet2 INT,
 octet3 INT,
 octet4 INT,
 octet5 INT,
 octet6 INT,
 pid BIGINT,
 seconds BIGINT,
 sequence BIGINT
)
COMMENT 'Return the fields of a version-1 ID as a struct: the body of the SQL function that others call.'
RETURN named_struct(
 'version',
 1,
 'mac',
 concat(
  get(split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */), _msgid_v1_fields.octet1),
  get(split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */), _msgid_v1_fields.octet2),
  get(split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */), _msgid_v1_fields.octet3),
  get(split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */), _msgid_v1_fields.octet4),
  get(split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */), _msgid_v1_fields.octet5),
  get(split(/* 256 entries: ff to 23; CRC-32 C8F2E882 */), _msgid_v1_fields.octet6)
 ),
 'pid',
 CAST(shiftright(_msgid_v1_fields.pid, 16) AS int),
 'seconds',
 (_msgid_v1_fields.seconds | 0),
 'time',
 timestamp_seconds((_msgid_v1_fields.seconds + 1609459200)),
 'sequence',
 (_msgid_v1_fields.sequence | 0),
 'origin',
 get(split(/* 256 entries: derived to random; CRC-32 85F703DE */), _msgid_v1_fields.octet1)
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v1_of_bytes(
 raw BINARY
)
COMMENT 'Return the fields of the 17 bytes of an ID, NULL for NULL: the body of another SQL function.'
RETURN (
 CASE
 WHEN (_msgid_v1_of_bytes.raw IS NOT NULL)
 THEN _msgid_v1_fields(
  CAST((crc32(substring(_msgid_v1_of_bytes.raw, 2, 1)) & 255) AS int),
  CAST((crc32(substring(_msgid_v1_of_bytes.raw, 3, 1)) & 255) AS int),
  CAST((crc32(substring(_msgid_v1_of_bytes.raw, 4, 1)) & 255) AS int),
  CAST((crc32(substring(_msgid_v1_of_bytes.raw, 5, 1)) & 255) AS int),
  CAST((crc32(substring(_msgid_v1_of_bytes.raw, 6, 1)) & 255) AS int),
  CAST((crc32(substring(_msgid_v1_of_bytes.raw, 7, 1)) & 255) AS int),
  _msgid_word(substring(_msgid_v1_of_bytes.raw, 8, 4)),
  _msgid_word(substring(_msgid_v1_of_bytes.raw, 10, 4)),
  _msgid_word(substring(_msgid_v1_of_bytes.raw, 14, 4))
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v0_fields(
 host STRING, kind STRING, is_broker BOOLEAN, port BIGINT, high BIGINT, low BIGINT
)
COMMENT 'Return the fields of a version-0 ID as a struct: the body of the SQL function that others call.'
RETURN named_struct(
 'kind',
 _msgid_v0_fields.kind,
 'host',
 _msgid_v0_fields.host,
 'port',
 CAST((_msgid_v0_fields.port | (CASE WHEN _msgid_v0_fields.is_broker THEN 0 END)) AS int),
 'offset',
 (
  (
   shiftleft(_msgid_v0_fields.high, 32) | _msgid_v0_fields.low
  )
  | (CASE WHEN _msgid_v0_fields.is_broker THEN 0 END)
 ),
 'pid',
 CAST(
  (
   (shiftright(_msgid_v0_fields.port, 16) & 65535) | (CASE WHEN (NOT _msgid_v0_fields.is_broker) THEN 0 END)
  )
  AS int
 ),
 'loader_hash',
 (
  (
   (shiftleft(_msgid_v0_fields.port, 16) | shiftright(_msgid_v0_fields.high, 16)) & 4294967295L
  )
  | (CASE WHEN (NOT _msgid_v0_fields.is_broker) THEN 0 END)
 ),
 'elapsed_ms',
 (
  (
   (shiftleft(_msgid_v0_fields.high, 16) | shiftright(_msgid_v0_fields.low, 16)) & 4294967295L
  )
  | (CASE WHEN (NOT _msgid_v0_fields.is_broker) THEN 0 END)
 ),
 'counter',
 CAST(((_msgid_v0_fields.low & 65535) | (CASE WHEN (NOT _msgid_v0_fields.is_broker) THEN 0 END)) AS int)
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_time_of_month(
 elapsed BIGINT, latest BIGINT, zone STRING
)
COMMENT 'Return the last time that is ``elapsed`` milliseconds after the start of its month, up to ``latest``.'
RETURN coalesce(
 (
  CASE
  WHEN (
   (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           0
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    <= _msgid_time_of_month.latest
   )
   AND (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           0
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    < unix_micros(
     to_utc_timestamp(
      timestamp_micros(
       (
        unix_date(
         add_months(
          trunc(
           date_from_unix_date(
            CAST(
             (
              (
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               )
               - pmod(
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                ),
                86400000000L
               )
              )
              / 86400000000L
             )
             AS int
            )
           ),
           'MM'
          ),
          1
         )
        )
        * 86400000000L
       )
      ),
      _msgid_time_of_month.zone
     )
    )
   )
  )
  THEN (
   unix_micros(
    to_utc_timestamp(
     timestamp_micros(
      (
       unix_date(
        add_months(
         trunc(
          date_from_unix_date(
           CAST(
            (
             (
              unix_micros(
               from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
              )
              - pmod(
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               ),
               86400000000L
              )
             )
             / 86400000000L
            )
            AS int
           )
          ),
          'MM'
         ),
         0
        )
       )
       * 86400000000L
      )
     ),
     _msgid_time_of_month.zone
    )
   )
   + (_msgid_time_of_month.elapsed * 1000)
  )
  END
 ),
 (
  CASE
  WHEN (
   (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           -1
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    <= _msgid_time_of_month.latest
   )
   AND (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           -1
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    < unix_micros(
     to_utc_timestamp(
      timestamp_micros(
       (
        unix_date(
         add_months(
          trunc(
           date_from_unix_date(
            CAST(
             (
              (
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               )
               - pmod(
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                ),
                86400000000L
               )
              )
              / 86400000000L
             )
             AS int
            )
           ),
           'MM'
          ),
          0
         )
        )
        * 86400000000L
       )
      ),
      _msgid_time_of_month.zone
     )
    )
   )
  )
  THEN (
   unix_micros(
    to_utc_timestamp(
     timestamp_micros(
      (
       unix_date(
        add_months(
         trunc(
          date_from_unix_date(
           CAST(
            (
             (
              unix_micros(
               from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
              )
              - pmod(
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               ),
               86400000000L
              )
             )
             / 86400000000L
            )
            AS int
           )
          ),
          'MM'
         ),
         -1
        )
       )
       * 86400000000L
      )
     ),
     _msgid_time_of_month.zone
    )
   )
   + (_msgid_time_of_month.elapsed * 1000)
  )
  END
 ),
 (
  CASE
  WHEN (
   (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           -2
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    <= _msgid_time_of_month.latest
   )
   AND (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           -2
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    < unix_micros(
     to_utc_timestamp(
      timestamp_micros(
       (
        unix_date(
         add_months(
          trunc(
           date_from_unix_date(
            CAST(
             (
              (
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               )
               - pmod(
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                ),
                86400000000L
               )
              )
              / 86400000000L
             )
             AS int
            )
           ),
           'MM'
          ),
          -1
         )
        )
        * 86400000000L
       )
      ),
      _msgid_time_of_month.zone
     )
    )
   )
  )
  THEN (
   unix_micros(
    to_utc_timestamp(
     timestamp_micros(
      (
       unix_date(
        add_months(
         trunc(
          date_from_unix_date(
           CAST(
            (
             (
              unix_micros(
               from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
              )
              - pmod(
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               ),
               86400000000L
              )
             )
             / 86400000000L
            )
            AS int
           )
          ),
          'MM'
         ),
         -2
        )
       )
       * 86400000000L
      )
     ),
     _msgid_time_of_month.zone
    )
   )
   + (_msgid_time_of_month.elapsed * 1000)
  )
  END
 ),
 (
  CASE
  WHEN (
   (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           -3
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    <= _msgid_time_of_month.latest
   )
   AND (
    (
     unix_micros(
      to_utc_timestamp(
       timestamp_micros(
        (
         unix_date(
          add_months(
           trunc(
            date_from_unix_date(
             CAST(
              (
               (
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                )
                - pmod(
                 unix_micros(
                  from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                 ),
                 86400000000L
                )
               )
               / 86400000000L
              )
              AS int
             )
            ),
            'MM'
           ),
           -3
          )
         )
         * 86400000000L
        )
       ),
       _msgid_time_of_month.zone
      )
     )
     + (_msgid_time_of_month.elapsed * 1000)
    )
    < unix_micros(
     to_utc_timestamp(
      timestamp_micros(
       (
        unix_date(
         add_months(
          trunc(
           date_from_unix_date(
            CAST(
             (
              (
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               )
               - pmod(
                unix_micros(
                 from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
                ),
                86400000000L
               )
              )
              / 86400000000L
             )
             AS int
            )
           ),
           'MM'
          ),
          -2
         )
        )
        * 86400000000L
       )
      ),
      _msgid_time_of_month.zone
     )
    )
   )
  )
  THEN (
   unix_micros(
    to_utc_timestamp(
     timestamp_micros(
      (
       unix_date(
        add_months(
         trunc(
          date_from_unix_date(
           CAST(
            (
             (
              unix_micros(
               from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
              )
              - pmod(
               unix_micros(
                from_utc_timestamp(timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone)
               ),
               86400000000L
              )
             )
             / 86400000000L
            )
            AS int
           )
          ),
          'MM'
         ),
         -3
        )
       )
       * 86400000000L
      )
     ),
     _msgid_time_of_month.zone
    )
   )
   + (_msgid_time_of_month.elapsed * 1000)
  )
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_position(
 source STRING, offset DOUBLE, at DECIMAL(38, 18)
)
COMMENT 'Return the ID of a message at a position of an ordered log, as `msgid.position_id` does. Example: msgid_position(\'kafka://orders/3\', 1234, 1648047038) = 013B0121EF30BE0000024CCDBE000004D2'
RETURN coalesce(
 CAST(
  concat(
   CAST(
    upper(
     CAST(
      concat(
       CAST('01' AS binary),
       CAST(
        substring(
         CAST(nullif(sha2(CAST(msgid_position.source AS string), 256), '') AS binary), 1, 1
        )
        AS binary
       ),
       CAST('B' AS binary),
       CAST(
        substring(
         CAST(nullif(sha2(CAST(msgid_position.source AS string), 256), '') AS binary), 2, 10
        )
        AS binary
       )
      )
      AS string
     )
    )
    AS binary
   ),
   CAST(
    substring(
     CAST(
      hex(
       (
        shiftleft(
         (
          shiftright(
           (
            CASE
            WHEN (
             (TRY_CAST(msgid_position.offset AS bigint) BETWEEN 0 AND 281474976710655L)
             AND (msgid_position.offset = TRY_CAST(msgid_position.offset AS bigint))
            )
            THEN TRY_CAST(msgid_position.offset AS bigint)
            END
           ),
           32
          )
          | 65536
         ),
         32
        )
        | (
         CASE
         WHEN (
          (TRY_CAST(floor(msgid_position.at) AS bigint) >= -62135596800L)
          AND (TRY_CAST(floor(msgid_position.at) AS bigint) < 253402300800L)
         )
         THEN ((TRY_CAST(floor(msgid_position.at) AS bigint) - 1609459200) & 4294967295L)
         END
        )
       )
      )
      AS binary
     ),
     2,
     12
    )
    AS binary
   ),
   CAST(
    substring(
     CAST(hex(((TRY_CAST(msgid_position.offset AS bigint) & 4294967295L) | 4294967296L)) AS binary), 2, 8
    )
    AS binary
   )
  )
  AS string
 ),
 (
  CASE
  WHEN (
   (TRY_CAST(msgid_position.offset AS bigint) BETWEEN 0 AND 281474976710655L)
   AND (msgid_position.offset = TRY_CAST(msgid_position.offset AS bigint))
  )
  THEN (
   CASE
   WHEN (
    (msgid_position.at IS NOT NULL)
    AND (
     NOT coalesce(
      (
       (TRY_CAST(floor(msgid_position.at) AS bigint) >= -62135596800L)
       AND (TRY_CAST(floor(msgid_position.at) AS bigint) < 253402300800L)
      ),
      false
     )
    )
   )
   THEN raise_error(
    concat(
     'at must be Unix seconds within the years 1 to 9999, got ',
     CAST(floor(msgid_position.at) AS string),
     (CASE WHEN (length(CAST(floor(msgid_position.at) AS string)) = 13) THEN ': milliseconds?' ELSE '' END)
    )
   )
   END
  )
  WHEN (msgid_position.offset IS NOT NULL)
  THEN raise_error(
   concat(
    'offset must be 0 to 281474976710655, got ',
    CAST(
     coalesce(
      (
       CASE
       WHEN (msgid_position.offset = TRY_CAST(msgid_position.offset AS bigint))
       THEN CAST(TRY_CAST(msgid_position.offset AS bigint) AS string)
       END
      ),
      CAST(msgid_position.offset AS string)
     )
     AS string
    )
   )
  )
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_derive_of_text(
 parent STRING, name STRING
)
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does.'
RETURN coalesce(
 hex(
  unhex(
   CAST(
    concat(
     CAST('01' AS binary),
     CAST(
      substring(
       CAST(
        nullif(
         sha2(
          concat(
           unhex(
            (
             CASE
             WHEN (
              (
               (octet_length(_msgid_derive_of_text.parent) = 34)
               AND startswith(_msgid_derive_of_text.parent, '01')
              )
              OR (octet_length(_msgid_derive_of_text.parent) IN (32, 56))
             )
             THEN _msgid_derive_of_text.parent
             WHEN (
              (octet_length(_msgid_derive_of_text.parent) IN (34, 58))
              AND startswith(_msgid_derive_of_text.parent, '00')
             )
             THEN substring(_msgid_derive_of_text.parent, 3, 56)
             WHEN (
              (octet_length(_msgid_derive_of_text.parent) = 36)
              AND regexp_like(
               _msgid_derive_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
              )
             )
             THEN replace(_msgid_derive_of_text.parent, '-')
             END
            )
           ),
           unhex('00'),
           CAST(CAST(_msgid_derive_of_text.name AS string) AS binary)
          ),
          256
         ),
         ''
        )
        AS binary
       ),
       1,
       1
      )
      AS binary
     ),
     CAST('F' AS binary),
     CAST(
      substring(
       CAST(
        nullif(
         sha2(
          concat(
           unhex(
            (
             CASE
             WHEN (
              (
               (octet_length(_msgid_derive_of_text.parent) = 34)
               AND startswith(_msgid_derive_of_text.parent, '01')
              )
              OR (octet_length(_msgid_derive_of_text.parent) IN (32, 56))
             )
             THEN _msgid_derive_of_text.parent
             WHEN (
              (octet_length(_msgid_derive_of_text.parent) IN (34, 58))
              AND startswith(_msgid_derive_of_text.parent, '00')
             )
             THEN substring(_msgid_derive_of_text.parent, 3, 56)
             WHEN (
              (octet_length(_msgid_derive_of_text.parent) = 36)
              AND regexp_like(
               _msgid_derive_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
              )
             )
             THEN replace(_msgid_derive_of_text.parent, '-')
             END
            )
           ),
           unhex('00'),
           CAST(CAST(_msgid_derive_of_text.name AS string) AS binary)
          ),
          256
         ),
         ''
        )
        AS binary
       ),
       2,
       14
      )
      AS binary
     ),
     CAST(
      (
       CASE
       WHEN (
        (octet_length(_msgid_derive_of_text.parent) = 34) AND startswith(_msgid_derive_of_text.parent, '01')
       )
       THEN substring(CAST(_msgid_derive_of_text.parent AS binary), 19, 8)
       ELSE CAST('00000000' AS binary)
       END
      )
      AS binary
     ),
     CAST(
      substring(
       CAST(
        nullif(
         sha2(
          concat(
           unhex(
            (
             CASE
             WHEN (
              (
               (octet_length(_msgid_derive_of_text.parent) = 34)
               AND startswith(_msgid_derive_of_text.parent, '01')
              )
              OR (octet_length(_msgid_derive_of_text.parent) IN (32, 56))
             )
             THEN _msgid_derive_of_text.parent
             WHEN (
              (octet_length(_msgid_derive_of_text.parent) IN (34, 58))
              AND startswith(_msgid_derive_of_text.parent, '00')
             )
             THEN substring(_msgid_derive_of_text.parent, 3, 56)
             WHEN (
              (octet_length(_msgid_derive_of_text.parent) = 36)
              AND regexp_like(
               _msgid_derive_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
              )
             )
             THEN replace(_msgid_derive_of_text.parent, '-')
             END
            )
           ),
           unhex('00'),
           CAST(CAST(_msgid_derive_of_text.name AS string) AS binary)
          ),
          256
         ),
         ''
        )
        AS binary
       ),
       16,
       8
      )
      AS binary
     )
    )
    AS string
   )
  )
 ),
 (
  CASE
  WHEN (
   (
    (
     CASE
     WHEN (
      ((octet_length(_msgid_derive_of_text.parent) = 34) AND startswith(_msgid_derive_of_text.parent, '01'))
      OR (
       (octet_length(_msgid_derive_of_text.parent) IN (34, 58))
       AND startswith(_msgid_derive_of_text.parent, '00')
      )
     )
     THEN true
     ELSE (octet_length(_msgid_derive_of_text.parent) IN (32, 56))
     END
    )
    AND ((unhex(_msgid_derive_of_text.parent) IS NOT NULL) OR (_msgid_derive_of_text.parent IS NULL))
   )
   OR (
    (octet_length(_msgid_derive_of_text.parent) = 36)
    AND regexp_like(
     _msgid_derive_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
    )
   )
  )
  THEN CAST(NULL AS string)
  WHEN (_msgid_derive_of_text.parent IS NOT NULL)
  THEN raise_error(
   concat(
    'invalid message id ',
    concat(
     '\'',
     left(_msgid_derive_of_text.parent, 64),
     '\'',
     (
      CASE
      WHEN (length(_msgid_derive_of_text.parent) > 64)
      THEN concat('... (', CAST(length(_msgid_derive_of_text.parent) AS string), ' in all)')
      ELSE ''
      END
     )
    ),
    ': ',
    (
     CASE
     WHEN (
      (octet_length(_msgid_derive_of_text.parent) = 36)
      AND regexp_like(
       _msgid_derive_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
      )
     )
     THEN 'a UUID is not a message ID: derive_id, Message and audits take it, iggy.id_value reads its bytes'
     WHEN (NOT (length(_msgid_derive_of_text.parent) IN (32, 56, 34, 58)))
     THEN concat(
      'must have 32, 34, 56 or 58 hex digits, got ',
      CAST(length(_msgid_derive_of_text.parent) AS string),
      ' characters'
     )
     WHEN ((_msgid_derive_of_text.parent IS NOT NULL) AND (unhex(_msgid_derive_of_text.parent) IS NULL))
     THEN 'must have hex digits only'
     WHEN (
      (
       (octet_length(_msgid_derive_of_text.parent) IN (34, 58))
       AND (NOT startswith(_msgid_derive_of_text.parent, '00'))
      )
      AND (
       NOT (
        (octet_length(_msgid_derive_of_text.parent) = 34) AND startswith(_msgid_derive_of_text.parent, '01')
       )
      )
     )
     THEN concat('unknown version ', conv(left(_msgid_derive_of_text.parent, 2), 16, 10))
     ELSE 'must be a message ID or a UUID'
     END
    )
   )
  )
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_derive(
 parent STRING, name STRING
)
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does. Example: msgid_derive(\'0156F7E71C361B21BC024CCDBE00000007\', \'invoice\') = 014FC1DBF6558F1AE2024CCDBE24D71D0F'
RETURN _msgid_derive_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_derive.parent) IN (16, 17, 28, 29))
   AND regexp_like(msgid_derive.parent, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_derive.parent)
  ELSE msgid_derive.parent
  END
 ),
 msgid_derive.name
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_derive_at_of_text(
 parent STRING, name STRING, at DECIMAL(38, 18)
)
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does.'
RETURN coalesce(
 hex(
  unhex(
   CAST(
    concat(
     CAST('01' AS binary),
     CAST(
      substring(
       CAST(
        nullif(
         sha2(
          concat(
           unhex(
            (
             CASE
             WHEN (
              (
               (octet_length(_msgid_derive_at_of_text.parent) = 34)
               AND startswith(_msgid_derive_at_of_text.parent, '01')
              )
              OR (octet_length(_msgid_derive_at_of_text.parent) IN (32, 56))
             )
             THEN _msgid_derive_at_of_text.parent
             WHEN (
              (octet_length(_msgid_derive_at_of_text.parent) IN (34, 58))
              AND startswith(_msgid_derive_at_of_text.parent, '00')
             )
             THEN substring(_msgid_derive_at_of_text.parent, 3, 56)
             WHEN (
              (octet_length(_msgid_derive_at_of_text.parent) = 36)
              AND regexp_like(
               _msgid_derive_at_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
              )
             )
             THEN replace(_msgid_derive_at_of_text.parent, '-')
             END
            )
           ),
           unhex('00'),
           CAST(CAST(_msgid_derive_at_of_text.name AS string) AS binary)
          ),
          256
         ),
         ''
        )
        AS binary
       ),
       1,
       1
      )
      AS binary
     ),
     CAST('F' AS binary),
     CAST(
      substring(
       CAST(
        nullif(
         sha2(
          concat(
           unhex(
            (
             CASE
             WHEN (
              (
               (octet_length(_msgid_derive_at_of_text.parent) = 34)
               AND startswith(_msgid_derive_at_of_text.parent, '01')
              )
              OR (octet_length(_msgid_derive_at_of_text.parent) IN (32, 56))
             )
             THEN _msgid_derive_at_of_text.parent
             WHEN (
              (octet_length(_msgid_derive_at_of_text.parent) IN (34, 58))
              AND startswith(_msgid_derive_at_of_text.parent, '00')
             )
             THEN substring(_msgid_derive_at_of_text.parent, 3, 56)
             WHEN (
              (octet_length(_msgid_derive_at_of_text.parent) = 36)
              AND regexp_like(
               _msgid_derive_at_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
              )
             )
             THEN replace(_msgid_derive_at_of_text.parent, '-')
             END
            )
           ),
           unhex('00'),
           CAST(CAST(_msgid_derive_at_of_text.name AS string) AS binary)
          ),
          256
         ),
         ''
        )
        AS binary
       ),
       2,
       14
      )
      AS binary
     ),
     CAST(
      substring(
       CAST(
        hex(
         (
          (
           CASE
           WHEN (
            (TRY_CAST(floor(_msgid_derive_at_of_text.at) AS bigint) >= -62135596800L)
            AND (TRY_CAST(floor(_msgid_derive_at_of_text.at) AS bigint) < 253402300800L)
           )
           THEN ((TRY_CAST(floor(_msgid_derive_at_of_text.at) AS bigint) - 1609459200) & 4294967295L)
           END
          )
          | 4294967296L
         )
        )
        AS binary
       ),
       2,
       8
      )
      AS binary
     ),
     CAST(
      substring(
       CAST(
        nullif(
         sha2(
          concat(
           unhex(
            (
             CASE
             WHEN (
              (
               (octet_length(_msgid_derive_at_of_text.parent) = 34)
               AND startswith(_msgid_derive_at_of_text.parent, '01')
              )
              OR (octet_length(_msgid_derive_at_of_text.parent) IN (32, 56))
             )
             THEN _msgid_derive_at_of_text.parent
             WHEN (
              (octet_length(_msgid_derive_at_of_text.parent) IN (34, 58))
              AND startswith(_msgid_derive_at_of_text.parent, '00')
             )
             THEN substring(_msgid_derive_at_of_text.parent, 3, 56)
             WHEN (
              (octet_length(_msgid_derive_at_of_text.parent) = 36)
              AND regexp_like(
               _msgid_derive_at_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
              )
             )
             THEN replace(_msgid_derive_at_of_text.parent, '-')
             END
            )
           ),
           unhex('00'),
           CAST(CAST(_msgid_derive_at_of_text.name AS string) AS binary)
          ),
          256
         ),
         ''
        )
        AS binary
       ),
       16,
       8
      )
      AS binary
     )
    )
    AS string
   )
  )
 ),
 (
  CASE
  WHEN (
   (
    (
     CASE
     WHEN (
      (
       (octet_length(_msgid_derive_at_of_text.parent) = 34)
       AND startswith(_msgid_derive_at_of_text.parent, '01')
      )
      OR (
       (octet_length(_msgid_derive_at_of_text.parent) IN (34, 58))
       AND startswith(_msgid_derive_at_of_text.parent, '00')
      )
     )
     THEN true
     ELSE (octet_length(_msgid_derive_at_of_text.parent) IN (32, 56))
     END
    )
    AND ((unhex(_msgid_derive_at_of_text.parent) IS NOT NULL) OR (_msgid_derive_at_of_text.parent IS NULL))
   )
   OR (
    (octet_length(_msgid_derive_at_of_text.parent) = 36)
    AND regexp_like(
     _msgid_derive_at_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
    )
   )
  )
  THEN (
   CASE
   WHEN (
    (_msgid_derive_at_of_text.at IS NOT NULL)
    AND (
     NOT coalesce(
      (
       (TRY_CAST(floor(_msgid_derive_at_of_text.at) AS bigint) >= -62135596800L)
       AND (TRY_CAST(floor(_msgid_derive_at_of_text.at) AS bigint) < 253402300800L)
      ),
      false
     )
    )
   )
   THEN raise_error(
    concat(
     'at must be Unix seconds within the years 1 to 9999, got ',
     CAST(floor(_msgid_derive_at_of_text.at) AS string),
     (
      CASE
      WHEN (length(CAST(floor(_msgid_derive_at_of_text.at) AS string)) = 13)
      THEN ': milliseconds?'
      ELSE ''
      END
     )
    )
   )
   END
  )
  WHEN (_msgid_derive_at_of_text.parent IS NOT NULL)
  THEN raise_error(
   concat(
    'invalid message id ',
    concat(
     '\'',
     left(_msgid_derive_at_of_text.parent, 64),
     '\'',
     (
      CASE
      WHEN (length(_msgid_derive_at_of_text.parent) > 64)
      THEN concat('... (', CAST(length(_msgid_derive_at_of_text.parent) AS string), ' in all)')
      ELSE ''
      END
     )
    ),
    ': ',
    (
     CASE
     WHEN (
      (octet_length(_msgid_derive_at_of_text.parent) = 36)
      AND regexp_like(
       _msgid_derive_at_of_text.parent, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
      )
     )
     THEN 'a UUID is not a message ID: derive_id, Message and audits take it, iggy.id_value reads its bytes'
     WHEN (NOT (length(_msgid_derive_at_of_text.parent) IN (32, 56, 34, 58)))
     THEN concat(
      'must have 32, 34, 56 or 58 hex digits, got ',
      CAST(length(_msgid_derive_at_of_text.parent) AS string),
      ' characters'
     )
     WHEN ((_msgid_derive_at_of_text.parent IS NOT NULL) AND (unhex(_msgid_derive_at_of_text.parent) IS NULL))
     THEN 'must have hex digits only'
     WHEN (
      (
       (octet_length(_msgid_derive_at_of_text.parent) IN (34, 58))
       AND (NOT startswith(_msgid_derive_at_of_text.parent, '00'))
      )
      AND (
       NOT (
        (octet_length(_msgid_derive_at_of_text.parent) = 34)
        AND startswith(_msgid_derive_at_of_text.parent, '01')
       )
      )
     )
     THEN concat('unknown version ', conv(left(_msgid_derive_at_of_text.parent, 2), 16, 10))
     ELSE 'must be a message ID or a UUID'
     END
    )
   )
  )
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_derive_at(
 parent STRING, name STRING, at DECIMAL(38, 18)
)
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does. Example: msgid_derive_at(\'74b158ca-ddb3-498f-b0a9-9eec1c6197ae\', \'invoice\', 1648047038) = 01DF2BEBB496D4B448024CCDBEF5D12B8E'
RETURN _msgid_derive_at_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_derive_at.parent) IN (16, 17, 28, 29))
   AND regexp_like(msgid_derive_at.parent, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_derive_at.parent)
  ELSE msgid_derive_at.parent
  END
 ),
 msgid_derive_at.name,
 msgid_derive_at.at
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_parse_of_text(id STRING) COMMENT 'Parse a version-1 ID.'
RETURN coalesce(
 _msgid_v1_of_bytes(
  (
   CASE
   WHEN ((octet_length(_msgid_parse_of_text.id) = 34) AND startswith(_msgid_parse_of_text.id, '01'))
   THEN unhex(_msgid_parse_of_text.id)
   END
  )
 ),
 (
  CASE
  WHEN (_msgid_parse_of_text.id IS NOT NULL)
  THEN raise_error(
   concat(
    'invalid message id ',
    concat(
     '\'',
     left(_msgid_parse_of_text.id, 64),
     '\'',
     (
      CASE
      WHEN (length(_msgid_parse_of_text.id) > 64)
      THEN concat('... (', CAST(length(_msgid_parse_of_text.id) AS string), ' in all)')
      ELSE ''
      END
     )
    ),
    ': ',
    (
     CASE
     WHEN (
      (octet_length(_msgid_parse_of_text.id) = 36)
      AND regexp_like(_msgid_parse_of_text.id, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z')
     )
     THEN 'a UUID is not a message ID: derive_id, Message and audits take it, iggy.id_value reads its bytes'
     WHEN (NOT (length(_msgid_parse_of_text.id) IN (32, 56, 34, 58)))
     THEN concat(
      'must have 32, 34, 56 or 58 hex digits, got ',
      CAST(length(_msgid_parse_of_text.id) AS string),
      ' characters'
     )
     WHEN ((_msgid_parse_of_text.id IS NOT NULL) AND (unhex(_msgid_parse_of_text.id) IS NULL))
     THEN 'must have hex digits only'
     WHEN (
      (
       (octet_length(_msgid_parse_of_text.id) IN (34, 58)) AND (NOT startswith(_msgid_parse_of_text.id, '00'))
      )
      AND (NOT ((octet_length(_msgid_parse_of_text.id) = 34) AND startswith(_msgid_parse_of_text.id, '01')))
     )
     THEN concat('unknown version ', conv(left(_msgid_parse_of_text.id, 2), 16, 10))
     ELSE 'must be of version 1, got version 0, which parse_v0 reads'
     END
    )
   )
  )
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_parse(
 id STRING
)
COMMENT 'Parse a version-1 ID. Example: msgid_parse(\'0156F7E71C361B21BC024CCDBE00000007\').pid = 8636'
RETURN _msgid_parse_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_parse.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_parse.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_parse.id)
  ELSE msgid_parse.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_try_parse_of_text(
 id STRING
)
COMMENT 'Parse a version-1 ID, as `parse_id` does; NULL for any other value.'
RETURN _msgid_v1_of_bytes(
 (
  CASE
  WHEN ((octet_length(_msgid_try_parse_of_text.id) = 34) AND startswith(_msgid_try_parse_of_text.id, '01'))
  THEN unhex(_msgid_try_parse_of_text.id)
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_parse(
 id STRING
)
COMMENT 'Parse a version-1 ID, as `parse_id` does; NULL for any other value. Example: msgid_try_parse(\'n/a\') = NULL'
RETURN _msgid_try_parse_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_try_parse.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_try_parse.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_try_parse.id)
  ELSE msgid_try_parse.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_is_valid_of_text(
 id STRING
)
COMMENT 'Return whether a value is an ID of any version, as `msgid.is_valid` does.'
RETURN (
 (
  CASE
  WHEN (
   ((octet_length(_msgid_is_valid_of_text.id) = 34) AND startswith(_msgid_is_valid_of_text.id, '01'))
   OR (
    (octet_length(_msgid_is_valid_of_text.id) IN (34, 58)) AND startswith(_msgid_is_valid_of_text.id, '00')
   )
  )
  THEN true
  ELSE (octet_length(_msgid_is_valid_of_text.id) IN (32, 56))
  END
 )
 AND ((unhex(_msgid_is_valid_of_text.id) IS NOT NULL) OR (_msgid_is_valid_of_text.id IS NULL))
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_is_valid(
 id STRING
)
COMMENT 'Return whether a value is an ID of any version, as `msgid.is_valid` does. Example: msgid_is_valid(\'7F0000010000238F000000000001E240\') = true'
RETURN _msgid_is_valid_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_is_valid.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_is_valid.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_is_valid.id)
  ELSE msgid_is_valid.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_kind_of_text(id STRING) COMMENT 'Return the kind of an ID.'
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(_msgid_kind_of_text.id) = 34) AND startswith(_msgid_kind_of_text.id, '01'))
   AND (octet_length(unhex(_msgid_kind_of_text.id)) = 17)
  )
  AND (unhex(_msgid_kind_of_text.id) IS NOT NULL)
 )
 THEN 'v1'
 ELSE (
  CASE
  WHEN (
   (
    (octet_length(_msgid_kind_of_text.id) IN (32, 56))
    OR ((octet_length(_msgid_kind_of_text.id) IN (34, 58)) AND startswith(_msgid_kind_of_text.id, '00'))
   )
   AND (unhex(_msgid_kind_of_text.id) IS NOT NULL)
  )
  THEN (
   CASE
   WHEN (
    (
     (
      (
       (substring(CAST(_msgid_kind_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
       AND (NOT (substring(CAST(_msgid_kind_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
      )
      AND (substring(CAST(_msgid_kind_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
     )
     AND (NOT (substring(CAST(_msgid_kind_of_text.id AS binary), -12, 2) = CAST('00' AS binary)))
    )
    AND (substring(CAST(_msgid_kind_of_text.id AS binary), -2, 2) = CAST('00' AS binary))
   )
   THEN 'v0-ambiguous'
   WHEN (
    (
     (substring(CAST(_msgid_kind_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
     AND (NOT (substring(CAST(_msgid_kind_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
    )
    AND (substring(CAST(_msgid_kind_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
   )
   THEN 'v0-broker-offset'
   WHEN (_msgid_kind_of_text.id IS NOT NULL)
   THEN 'v0-client-unique'
   END
  )
  END
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_kind(
 id STRING
)
COMMENT 'Return the kind of an ID. Example: msgid_kind(\'7F0000010000238F000000000001E240\') = v0-broker-offset'
RETURN _msgid_kind_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_kind.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_kind.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_kind.id)
  ELSE msgid_kind.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_time_of_text(
 id STRING
)
COMMENT 'Return the time of a version-1 ID.'
RETURN timestamp_seconds(
 (
  _msgid_word(
   substring(
    (
     CASE
     WHEN ((octet_length(_msgid_time_of_text.id) = 34) AND startswith(_msgid_time_of_text.id, '01'))
     THEN unhex(_msgid_time_of_text.id)
     END
    ),
    10,
    4
   )
  )
  + 1609459200
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_time(
 id STRING
)
COMMENT 'Return the time of a version-1 ID. Example: msgid_time(\'0156F7E71C361B21BC024CCDBE00000007\') = 2022-03-23 14:50:38'
RETURN _msgid_time_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_time.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_time.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_time.id)
  ELSE msgid_time.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_mac_of_text(
 id STRING
)
COMMENT 'Return the node of a version-1 ID, written as a MAC address.'
RETURN concat(
 get(
  split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(_msgid_mac_of_text.id) = 34) AND startswith(_msgid_mac_of_text.id, '01'))
       THEN unhex(_msgid_mac_of_text.id)
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
  split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(_msgid_mac_of_text.id) = 34) AND startswith(_msgid_mac_of_text.id, '01'))
       THEN unhex(_msgid_mac_of_text.id)
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
  split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(_msgid_mac_of_text.id) = 34) AND startswith(_msgid_mac_of_text.id, '01'))
       THEN unhex(_msgid_mac_of_text.id)
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
  split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(_msgid_mac_of_text.id) = 34) AND startswith(_msgid_mac_of_text.id, '01'))
       THEN unhex(_msgid_mac_of_text.id)
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
  split(/* 256 entries: ff: to 23:; CRC-32 E82506C1 */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(_msgid_mac_of_text.id) = 34) AND startswith(_msgid_mac_of_text.id, '01'))
       THEN unhex(_msgid_mac_of_text.id)
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
  split(/* 256 entries: ff to 23; CRC-32 C8F2E882 */),
  CAST(
   (
    crc32(
     substring(
      (
       CASE
       WHEN ((octet_length(_msgid_mac_of_text.id) = 34) AND startswith(_msgid_mac_of_text.id, '01'))
       THEN unhex(_msgid_mac_of_text.id)
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

CREATE OR REPLACE TEMPORARY FUNCTION msgid_mac(
 id STRING
)
COMMENT 'Return the node of a version-1 ID, written as a MAC address. Example: msgid_mac(\'0156F7E71C361B21BC024CCDBE00000007\') = 56:f7:e7:1c:36:1b'
RETURN _msgid_mac_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_mac.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_mac.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_mac.id)
  ELSE msgid_mac.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_origin_of_text(
 id STRING
)
COMMENT 'Return the origin that a version-1 ID declares: ``mac``, ``random``, ``assigned``, ``position`` or ``derived``.'
RETURN get(
 split(/* 256 entries: derived to random; CRC-32 85F703DE */),
 CAST(
  (
   crc32(
    substring(
     (
      CASE
      WHEN ((octet_length(_msgid_origin_of_text.id) = 34) AND startswith(_msgid_origin_of_text.id, '01'))
      THEN unhex(_msgid_origin_of_text.id)
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

CREATE OR REPLACE TEMPORARY FUNCTION msgid_origin(
 id STRING
)
COMMENT 'Return the origin that a version-1 ID declares: ``mac``, ``random``, ``assigned``, ``position`` or ``derived``. Example: msgid_origin(\'0156F7E71C361B21BC024CCDBE00000007\') = mac'
RETURN _msgid_origin_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_origin.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_origin.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_origin.id)
  ELSE msgid_origin.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_time_key_of_text(
 id STRING
)
COMMENT 'Return 16 bytes that sort version-1 IDs by (seconds, sequence, node, pid), as `msgid.MessageId.time_key` does.'
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(_msgid_time_key_of_text.id) = 34) AND startswith(_msgid_time_key_of_text.id, '01'))
   AND (octet_length(unhex(_msgid_time_key_of_text.id)) = 17)
  )
  AND (unhex(_msgid_time_key_of_text.id) IS NOT NULL)
 )
 THEN unhex(
  concat(
   substring(_msgid_time_key_of_text.id, 19, 8),
   substring(_msgid_time_key_of_text.id, 27, 8),
   substring(_msgid_time_key_of_text.id, 3, 12),
   substring(_msgid_time_key_of_text.id, 15, 4)
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_time_key(
 id STRING
)
COMMENT 'Return 16 bytes that sort version-1 IDs by (seconds, sequence, node, pid), as `msgid.MessageId.time_key` does. Example: hex(msgid_time_key(\'0156F7E71C361B21BC024CCDBE00000007\')) = 024CCDBE0000000756F7E71C361B21BC'
RETURN _msgid_time_key_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_time_key.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_time_key.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_time_key.id)
  ELSE msgid_time_key.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_to_binary_of_text(
 id STRING
)
COMMENT 'Return an ID\'s bytes: 17 for version 1, and for version 0 the bytes of its text.'
RETURN (
 CASE
 WHEN (
  (
   CASE
   WHEN (
    ((octet_length(_msgid_to_binary_of_text.id) = 34) AND startswith(_msgid_to_binary_of_text.id, '01'))
    OR (
     (octet_length(_msgid_to_binary_of_text.id) IN (34, 58)) AND startswith(_msgid_to_binary_of_text.id, '00')
    )
   )
   THEN true
   ELSE (octet_length(_msgid_to_binary_of_text.id) IN (32, 56))
   END
  )
  AND ((unhex(_msgid_to_binary_of_text.id) IS NOT NULL) OR (_msgid_to_binary_of_text.id IS NULL))
 )
 THEN unhex(_msgid_to_binary_of_text.id)
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_binary(
 id STRING
)
COMMENT 'Return an ID\'s bytes: 17 for version 1, and for version 0 the bytes of its text. Example: hex(msgid_to_binary(\'0156F7E71C361B21BC024CCDBE00000007\')) = 0156F7E71C361B21BC024CCDBE00000007'
RETURN _msgid_to_binary_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_to_binary.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_to_binary.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_to_binary.id)
  ELSE msgid_to_binary.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_from_binary_of_text(
 id STRING
)
COMMENT 'Return the text of an ID from its bytes.'
RETURN (
 CASE
 WHEN (
  (
   CASE
   WHEN (
    ((octet_length(_msgid_from_binary_of_text.id) = 34) AND startswith(_msgid_from_binary_of_text.id, '01'))
    OR (
     (octet_length(_msgid_from_binary_of_text.id) IN (34, 58))
     AND startswith(_msgid_from_binary_of_text.id, '00')
    )
   )
   THEN true
   ELSE (octet_length(_msgid_from_binary_of_text.id) IN (32, 56))
   END
  )
  AND ((unhex(_msgid_from_binary_of_text.id) IS NOT NULL) OR (_msgid_from_binary_of_text.id IS NULL))
 )
 THEN upper(_msgid_from_binary_of_text.id)
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_binary(
 id STRING
)
COMMENT 'Return the text of an ID from its bytes. Example: msgid_from_binary(X\'0156F7E71C361B21BC024CCDBE00000007\') = 0156F7E71C361B21BC024CCDBE00000007'
RETURN _msgid_from_binary_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_from_binary.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_from_binary.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_from_binary.id)
  ELSE msgid_from_binary.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_to_uuid_of_text(
 id STRING
)
COMMENT 'Return the 16 bytes after the version byte of a version-1 ID as a UUID, as `msgid.MessageId.uuid` does.'
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(_msgid_to_uuid_of_text.id) = 34) AND startswith(_msgid_to_uuid_of_text.id, '01'))
   AND (octet_length(unhex(_msgid_to_uuid_of_text.id)) = 17)
  )
  AND (unhex(_msgid_to_uuid_of_text.id) IS NOT NULL)
 )
 THEN concat_ws(
  '-',
  substring(lower(substring(_msgid_to_uuid_of_text.id, 3, 32)), 1, 8),
  substring(lower(substring(_msgid_to_uuid_of_text.id, 3, 32)), 9, 4),
  substring(lower(substring(_msgid_to_uuid_of_text.id, 3, 32)), 13, 4),
  substring(lower(substring(_msgid_to_uuid_of_text.id, 3, 32)), 17, 4),
  substring(lower(substring(_msgid_to_uuid_of_text.id, 3, 32)), 21, 12)
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_uuid(
 id STRING
)
COMMENT 'Return the 16 bytes after the version byte of a version-1 ID as a UUID, as `msgid.MessageId.uuid` does. Example: msgid_to_uuid(\'0156F7E71C361B21BC024CCDBE00000007\') = 56f7e71c-361b-21bc-024c-cdbe00000007'
RETURN _msgid_to_uuid_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_to_uuid.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_to_uuid.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_to_uuid.id)
  ELSE msgid_to_uuid.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_uuid(
 uuid STRING
)
COMMENT 'Return the version-1 ID of a UUID that `id_to_uuid` made. Example: msgid_from_uuid(\'56f7e71c-361b-21bc-024c-cdbe00000007\') = 0156F7E71C361B21BC024CCDBE00000007'
RETURN (
 CASE
 WHEN (
  (
   (
    (
     (
      ((length(msgid_from_uuid.uuid) = 36) AND (regexp_replace(msgid_from_uuid.uuid, '[^-]', '') = '----'))
      AND (substring(msgid_from_uuid.uuid, 9, 1) = '-')
     )
     AND (substring(msgid_from_uuid.uuid, 14, 1) = '-')
    )
    AND (substring(msgid_from_uuid.uuid, 19, 1) = '-')
   )
   AND (substring(msgid_from_uuid.uuid, 24, 1) = '-')
  )
  AND (unhex(upper(regexp_replace(msgid_from_uuid.uuid, '-', ''))) IS NOT NULL)
 )
 THEN concat('01', upper(regexp_replace(msgid_from_uuid.uuid, '-', '')))
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_parse_v0_of_text(
 id STRING
)
COMMENT 'Parse a version-0 ID: a broker\'s offset, or a client\'s IP address, pid, time and counter.'
RETURN coalesce(
 (
  CASE
  WHEN (
   (
    (octet_length(_msgid_parse_v0_of_text.id) IN (32, 56))
    OR (
     (octet_length(_msgid_parse_v0_of_text.id) IN (34, 58)) AND startswith(_msgid_parse_v0_of_text.id, '00')
    )
   )
   AND (unhex(_msgid_parse_v0_of_text.id) IS NOT NULL)
  )
  THEN _msgid_v0_fields(
   (
    CASE
    WHEN (octet_length(_msgid_parse_v0_of_text.id) >= 56)
    THEN regexp_replace(
     regexp_replace(
      concat(
       regexp_replace(
        lower(substring(_msgid_parse_v0_of_text.id, -56, 32)), '000(.)|00(..)|0(...)|(....)', ':$1$2$3$4'
       ),
       ':'
      ),
      '^(?:(.*?):(?:0:){8}(.*)|(.*?):(?:0:){7}(.*)|(.*?):(?:0:){6}(.*)|(.*?):(?:0:){5}(.*)|(.*?):(?:0:){4}(.*)|(.*?):(?:0:){3}(.*)|(.*?):(?:0:){2}(.*))$',
      '$1$3$5$7$9$11$13::$2$4$6$8$10$12$14'
     ),
     '^:(?!:)|(?<!:):$',
     ''
    )
    ELSE concat(
     get(
      split(/* 256 entries: 255. to 35.; CRC-32 38A61336 */),
      CAST((crc32(substring(unhex(_msgid_parse_v0_of_text.id), -16, 1)) & 255) AS int)
     ),
     get(
      split(/* 256 entries: 255. to 35.; CRC-32 38A61336 */),
      CAST((crc32(substring(unhex(_msgid_parse_v0_of_text.id), -15, 1)) & 255) AS int)
     ),
     get(
      split(/* 256 entries: 255. to 35.; CRC-32 38A61336 */),
      CAST((crc32(substring(unhex(_msgid_parse_v0_of_text.id), -14, 1)) & 255) AS int)
     ),
     get(
      split(/* 256 entries: 255 to 35; CRC-32 08DC58B3 */),
      CAST((crc32(substring(unhex(_msgid_parse_v0_of_text.id), -13, 1)) & 255) AS int)
     )
    )
    END
   ),
   (
    CASE
    WHEN (
     (
      (
       (
        (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
        AND (NOT (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
       )
       AND (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
      )
      AND (NOT (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -12, 2) = CAST('00' AS binary)))
     )
     AND (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -2, 2) = CAST('00' AS binary))
    )
    THEN 'v0-ambiguous'
    WHEN (
     (
      (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
      AND (NOT (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
     )
     AND (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
    )
    THEN 'v0-broker-offset'
    WHEN (_msgid_parse_v0_of_text.id IS NOT NULL)
    THEN 'v0-client-unique'
    END
   ),
   (
    (
     (
      (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
      AND (NOT (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
     )
     AND (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
    )
    AND (
     NOT (
      (
       (
        (
         (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
         AND (NOT (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
        )
        AND (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
       )
       AND (NOT (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -12, 2) = CAST('00' AS binary)))
      )
      AND (substring(CAST(_msgid_parse_v0_of_text.id AS binary), -2, 2) = CAST('00' AS binary))
     )
    )
   ),
   _msgid_word(substring(unhex(_msgid_parse_v0_of_text.id), -12, 4)),
   _msgid_word(substring(unhex(_msgid_parse_v0_of_text.id), -8, 4)),
   _msgid_word(substring(unhex(_msgid_parse_v0_of_text.id), -4, 4))
  )
  END
 ),
 (
  CASE
  WHEN (_msgid_parse_v0_of_text.id IS NOT NULL)
  THEN raise_error(
   concat(
    'invalid message id ',
    concat(
     '\'',
     left(_msgid_parse_v0_of_text.id, 64),
     '\'',
     (
      CASE
      WHEN (length(_msgid_parse_v0_of_text.id) > 64)
      THEN concat('... (', CAST(length(_msgid_parse_v0_of_text.id) AS string), ' in all)')
      ELSE ''
      END
     )
    ),
    ': ',
    (
     CASE
     WHEN (
      (octet_length(_msgid_parse_v0_of_text.id) = 36)
      AND regexp_like(
       _msgid_parse_v0_of_text.id, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
      )
     )
     THEN 'a UUID is not a message ID: derive_id, Message and audits take it, iggy.id_value reads its bytes'
     WHEN (NOT (length(_msgid_parse_v0_of_text.id) IN (32, 56, 34, 58)))
     THEN concat(
      'must have 32, 34, 56 or 58 hex digits, got ',
      CAST(length(_msgid_parse_v0_of_text.id) AS string),
      ' characters'
     )
     WHEN ((_msgid_parse_v0_of_text.id IS NOT NULL) AND (unhex(_msgid_parse_v0_of_text.id) IS NULL))
     THEN 'must have hex digits only'
     WHEN (
      (
       (octet_length(_msgid_parse_v0_of_text.id) IN (34, 58))
       AND (NOT startswith(_msgid_parse_v0_of_text.id, '00'))
      )
      AND (
       NOT ((octet_length(_msgid_parse_v0_of_text.id) = 34) AND startswith(_msgid_parse_v0_of_text.id, '01'))
      )
     )
     THEN concat('unknown version ', conv(left(_msgid_parse_v0_of_text.id, 2), 16, 10))
     ELSE 'must be of version 0, got version 1'
     END
    )
   )
  )
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_parse_v0(
 id STRING
)
COMMENT 'Parse a version-0 ID: a broker\'s offset, or a client\'s IP address, pid, time and counter. Example: msgid_parse_v0(\'7F0000010000238F000000000001E240\').host = 127.0.0.1'
RETURN _msgid_parse_v0_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_parse_v0.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_parse_v0.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_parse_v0.id)
  ELSE msgid_parse_v0.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_try_parse_v0_of_text(
 id STRING
)
COMMENT 'Parse a version-0 ID, as `parse_v0` does; NULL for any other value.'
RETURN (
 CASE
 WHEN (
  (
   (octet_length(_msgid_try_parse_v0_of_text.id) IN (32, 56))
   OR (
    (octet_length(_msgid_try_parse_v0_of_text.id) IN (34, 58))
    AND startswith(_msgid_try_parse_v0_of_text.id, '00')
   )
  )
  AND (unhex(_msgid_try_parse_v0_of_text.id) IS NOT NULL)
 )
 THEN _msgid_v0_fields(
  (
   CASE
   WHEN (octet_length(_msgid_try_parse_v0_of_text.id) >= 56)
   THEN regexp_replace(
    regexp_replace(
     concat(
      regexp_replace(
       lower(substring(_msgid_try_parse_v0_of_text.id, -56, 32)), '000(.)|00(..)|0(...)|(....)', ':$1$2$3$4'
      ),
      ':'
     ),
     '^(?:(.*?):(?:0:){8}(.*)|(.*?):(?:0:){7}(.*)|(.*?):(?:0:){6}(.*)|(.*?):(?:0:){5}(.*)|(.*?):(?:0:){4}(.*)|(.*?):(?:0:){3}(.*)|(.*?):(?:0:){2}(.*))$',
     '$1$3$5$7$9$11$13::$2$4$6$8$10$12$14'
    ),
    '^:(?!:)|(?<!:):$',
    ''
   )
   ELSE concat(
    get(
     split(/* 256 entries: 255. to 35.; CRC-32 38A61336 */),
     CAST((crc32(substring(unhex(_msgid_try_parse_v0_of_text.id), -16, 1)) & 255) AS int)
    ),
    get(
     split(/* 256 entries: 255. to 35.; CRC-32 38A61336 */),
     CAST((crc32(substring(unhex(_msgid_try_parse_v0_of_text.id), -15, 1)) & 255) AS int)
    ),
    get(
     split(/* 256 entries: 255. to 35.; CRC-32 38A61336 */),
     CAST((crc32(substring(unhex(_msgid_try_parse_v0_of_text.id), -14, 1)) & 255) AS int)
    ),
    get(
     split(/* 256 entries: 255 to 35; CRC-32 08DC58B3 */),
     CAST((crc32(substring(unhex(_msgid_try_parse_v0_of_text.id), -13, 1)) & 255) AS int)
    )
   )
   END
  ),
  (
   CASE
   WHEN (
    (
     (
      (
       (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
       AND (NOT (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
      )
      AND (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
     )
     AND (NOT (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -12, 2) = CAST('00' AS binary)))
    )
    AND (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -2, 2) = CAST('00' AS binary))
   )
   THEN 'v0-ambiguous'
   WHEN (
    (
     (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
     AND (NOT (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
    )
    AND (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
   )
   THEN 'v0-broker-offset'
   WHEN (_msgid_try_parse_v0_of_text.id IS NOT NULL)
   THEN 'v0-client-unique'
   END
  ),
  (
   (
    (
     (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
     AND (NOT (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
    )
    AND (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
   )
   AND (
    NOT (
     (
      (
       (
        (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
        AND (NOT (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
       )
       AND (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
      )
      AND (NOT (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -12, 2) = CAST('00' AS binary)))
     )
     AND (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -2, 2) = CAST('00' AS binary))
    )
   )
  ),
  _msgid_word(substring(unhex(_msgid_try_parse_v0_of_text.id), -12, 4)),
  _msgid_word(substring(unhex(_msgid_try_parse_v0_of_text.id), -8, 4)),
  _msgid_word(substring(unhex(_msgid_try_parse_v0_of_text.id), -4, 4))
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_parse_v0(
 id STRING
)
COMMENT 'Parse a version-0 ID, as `parse_v0` does; NULL for any other value. Example: msgid_try_parse_v0(\'0156F7E71C361B21BC024CCDBE00000007\') = NULL'
RETURN _msgid_try_parse_v0_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_try_parse_v0.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_try_parse_v0.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_try_parse_v0.id)
  ELSE msgid_try_parse_v0.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_translate_v0_of_text(
 id STRING
)
COMMENT 'Return the canonical text of version-0 IDs, with ``00`` in front, as `msgid.translate_v0` does.'
RETURN (
 CASE
 WHEN (
  (
   (octet_length(_msgid_translate_v0_of_text.id) IN (32, 56))
   OR (
    (octet_length(_msgid_translate_v0_of_text.id) IN (34, 58))
    AND startswith(_msgid_translate_v0_of_text.id, '00')
   )
  )
  AND (unhex(_msgid_translate_v0_of_text.id) IS NOT NULL)
 )
 THEN (
  CASE
  WHEN (
   (octet_length(_msgid_translate_v0_of_text.id) IN (34, 58))
   AND startswith(_msgid_translate_v0_of_text.id, '00')
  )
  THEN upper(_msgid_translate_v0_of_text.id)
  ELSE concat('00', upper(_msgid_translate_v0_of_text.id))
  END
 )
 WHEN (_msgid_translate_v0_of_text.id IS NOT NULL)
 THEN raise_error(
  concat(
   'invalid message id ',
   concat(
    '\'',
    left(_msgid_translate_v0_of_text.id, 64),
    '\'',
    (
     CASE
     WHEN (length(_msgid_translate_v0_of_text.id) > 64)
     THEN concat('... (', CAST(length(_msgid_translate_v0_of_text.id) AS string), ' in all)')
     ELSE ''
     END
    )
   ),
   ': ',
   (
    CASE
    WHEN (
     (octet_length(_msgid_translate_v0_of_text.id) = 36)
     AND regexp_like(
      _msgid_translate_v0_of_text.id, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z'
     )
    )
    THEN 'a UUID is not a message ID: derive_id, Message and audits take it, iggy.id_value reads its bytes'
    WHEN (NOT (length(_msgid_translate_v0_of_text.id) IN (32, 56, 34, 58)))
    THEN concat(
     'must have 32, 34, 56 or 58 hex digits, got ',
     CAST(length(_msgid_translate_v0_of_text.id) AS string),
     ' characters'
    )
    WHEN ((_msgid_translate_v0_of_text.id IS NOT NULL) AND (unhex(_msgid_translate_v0_of_text.id) IS NULL))
    THEN 'must have hex digits only'
    WHEN (
     (
      (octet_length(_msgid_translate_v0_of_text.id) IN (34, 58))
      AND (NOT startswith(_msgid_translate_v0_of_text.id, '00'))
     )
     AND (
      NOT (
       (octet_length(_msgid_translate_v0_of_text.id) = 34)
       AND startswith(_msgid_translate_v0_of_text.id, '01')
      )
     )
    )
    THEN concat('unknown version ', conv(left(_msgid_translate_v0_of_text.id, 2), 16, 10))
    ELSE 'must be of version 0, got version 1'
    END
   )
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_translate_v0(
 id STRING
)
COMMENT 'Return the canonical text of version-0 IDs, with ``00`` in front, as `msgid.translate_v0` does. Example: msgid_translate_v0(\'7F0000010000238F000000000001E240\') = 007F0000010000238F000000000001E240'
RETURN _msgid_translate_v0_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_translate_v0.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_translate_v0.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_translate_v0.id)
  ELSE msgid_translate_v0.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_try_translate_v0_of_text(
 id STRING
)
COMMENT 'Return the canonical text of version-0 IDs, as `translate_v0` does; NULL for any other value.'
RETURN (
 CASE
 WHEN (
  (
   (octet_length(_msgid_try_translate_v0_of_text.id) IN (32, 56))
   OR (
    (octet_length(_msgid_try_translate_v0_of_text.id) IN (34, 58))
    AND startswith(_msgid_try_translate_v0_of_text.id, '00')
   )
  )
  AND (unhex(_msgid_try_translate_v0_of_text.id) IS NOT NULL)
 )
 THEN (
  CASE
  WHEN (
   (octet_length(_msgid_try_translate_v0_of_text.id) IN (34, 58))
   AND startswith(_msgid_try_translate_v0_of_text.id, '00')
  )
  THEN upper(_msgid_try_translate_v0_of_text.id)
  ELSE concat('00', upper(_msgid_try_translate_v0_of_text.id))
  END
 )
 WHEN (_msgid_try_translate_v0_of_text.id IS NOT NULL)
 THEN CAST(NULL AS string)
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_translate_v0(
 id STRING
)
COMMENT 'Return the canonical text of version-0 IDs, as `translate_v0` does; NULL for any other value. Example: msgid_try_translate_v0(\'0156F7E71C361B21BC024CCDBE00000007\') = NULL'
RETURN _msgid_try_translate_v0_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_try_translate_v0.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_try_translate_v0.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_try_translate_v0.id)
  ELSE msgid_try_translate_v0.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v0_time_of_text(
 id STRING, near DECIMAL(38, 18), timezone STRING
)
COMMENT 'Return the time at which a version-0 client ID was made, as `msgid.ClientUniqueId.time_near` does.'
RETURN coalesce(
 CAST(
  (
   CASE
   WHEN (
    (_msgid_v0_time_of_text.near IS NOT NULL)
    AND (
     NOT coalesce(
      (
       (TRY_CAST(floor(_msgid_v0_time_of_text.near) AS bigint) >= -62135596800L)
       AND (TRY_CAST(floor(_msgid_v0_time_of_text.near) AS bigint) < 253402300800L)
      ),
      false
     )
    )
   )
   THEN raise_error(
    concat(
     'near must be Unix seconds within the years 1 to 9999, got ',
     CAST(floor(_msgid_v0_time_of_text.near) AS string),
     (
      CASE
      WHEN (length(CAST(floor(_msgid_v0_time_of_text.near) AS string)) = 13)
      THEN ': milliseconds?'
      ELSE ''
      END
     )
    )
   )
   END
  )
  AS timestamp
 ),
 timestamp_micros(
  (
   _msgid_time_of_month(
    _msgid_word(substring(unhex(_msgid_v0_time_of_text.id), -6, 4)),
    (
     (
      CASE
      WHEN (
       (TRY_CAST(floor(_msgid_v0_time_of_text.near) AS bigint) >= -62135596800L)
       AND (TRY_CAST(floor(_msgid_v0_time_of_text.near) AS bigint) < 253402300800L)
      )
      THEN TRY_CAST(floor((_msgid_v0_time_of_text.near * 1000000)) AS bigint)
      END
     )
     + 86400000000L
    ),
    _msgid_v0_time_of_text.timezone
   )
   + (
    CASE
    WHEN (
     (
      (
       (octet_length(_msgid_v0_time_of_text.id) IN (32, 56))
       OR (
        (octet_length(_msgid_v0_time_of_text.id) IN (34, 58)) AND startswith(_msgid_v0_time_of_text.id, '00')
       )
      )
      AND (unhex(_msgid_v0_time_of_text.id) IS NOT NULL)
     )
     AND (
      (
       NOT (
        (
         (substring(CAST(_msgid_v0_time_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
         AND (NOT (substring(CAST(_msgid_v0_time_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
        )
        AND (substring(CAST(_msgid_v0_time_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
       )
      )
      OR (
       (
        (
         (
          (substring(CAST(_msgid_v0_time_of_text.id AS binary), -24, 4) = CAST('0000' AS binary))
          AND (NOT (substring(CAST(_msgid_v0_time_of_text.id AS binary), -20, 4) = CAST('0000' AS binary)))
         )
         AND (substring(CAST(_msgid_v0_time_of_text.id AS binary), -16, 4) = CAST('0000' AS binary))
        )
        AND (NOT (substring(CAST(_msgid_v0_time_of_text.id AS binary), -12, 2) = CAST('00' AS binary)))
       )
       AND (substring(CAST(_msgid_v0_time_of_text.id AS binary), -2, 2) = CAST('00' AS binary))
      )
     )
    )
    THEN 0
    END
   )
  )
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_v0_time(
 id STRING, near DECIMAL(38, 18), timezone STRING
)
COMMENT 'Return the time at which a version-0 client ID was made, as `msgid.ClientUniqueId.time_near` does. Example: msgid_v0_time(\'C0A8F001103E214D29547ACFD6E30000\', 1648047038, \'UTC\') = 2022-02-24 20:20:41.315'
RETURN _msgid_v0_time_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_v0_time.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_v0_time.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_v0_time.id)
  ELSE msgid_v0_time.id
  END
 ),
 msgid_v0_time.near,
 msgid_v0_time.timezone
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_message_state(
 code BIGINT
)
COMMENT 'Return the name of a message\'s state for its code, as `msgid.MessageState` does. Example: msgid_message_state(10) = unavailable'
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
   'invalid message: state must be 1, 10, 20 or 30, got ',
   CAST(CAST(msgid_message_state.code AS bigint) AS string)
  )
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_checksum_ok(
 payload BINARY, checksum BIGINT
)
COMMENT 'Return whether a checksum is the CRC-32 of a payload, as `msgid.iggy.checksum` computes it. Example: msgid_checksum_ok(X\'616263\', 891568578) = true'
RETURN (crc32(msgid_checksum_ok.payload) = msgid_checksum_ok.checksum);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_iggy_id(
 id BINARY
)
COMMENT 'Return the ID of an Iggy message as text, a version-1 ID or a UUID, as `msgid.iggy.id_text` does. Example: msgid_from_iggy_id(X\'AE97611CEC9EA9B08F49B3DDCA58B174\') = 01AE97611CEC9EA9B08F49B3DDCA58B174'
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
 WHEN (
  (octet_length(hex(CAST(msgid_from_iggy_id.id AS binary))) = 34)
  AND startswith(hex(CAST(msgid_from_iggy_id.id AS binary)), '01')
 )
 THEN hex(CAST(msgid_from_iggy_id.id AS binary))
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_is_expired(
 timestamp DECIMAL(38, 18), expiry BIGINT, now DECIMAL(38, 18)
)
COMMENT 'Return whether messages have expired, as `msgid.retention.is_expired` does. Example: msgid_is_expired(1648047038, 3600, 1648060000) = true'
RETURN coalesce(
 CAST(
  (
   CASE
   WHEN (
    (msgid_is_expired.now IS NOT NULL)
    AND (
     NOT coalesce(
      (
       (TRY_CAST(floor(msgid_is_expired.now) AS bigint) >= -62135596800L)
       AND (TRY_CAST(floor(msgid_is_expired.now) AS bigint) < 253402300800L)
      ),
      false
     )
    )
   )
   THEN raise_error(
    concat(
     'now must be Unix seconds within the years 1 to 9999, got ',
     CAST(floor(msgid_is_expired.now) AS string),
     (CASE WHEN (length(CAST(floor(msgid_is_expired.now) AS string)) = 13) THEN ': milliseconds?' ELSE '' END)
    )
   )
   END
  )
  AS boolean
 ),
 coalesce(
  CAST(
   (
    CASE
    WHEN (
     (msgid_is_expired.timestamp IS NOT NULL)
     AND (
      NOT coalesce(
       (
        (TRY_CAST(floor(msgid_is_expired.timestamp) AS bigint) >= -62135596800L)
        AND (TRY_CAST(floor(msgid_is_expired.timestamp) AS bigint) < 253402300800L)
       ),
       false
      )
     )
    )
    THEN raise_error(
     concat(
      'timestamp must be Unix seconds within the years 1 to 9999, got ',
      CAST(floor(msgid_is_expired.timestamp) AS string),
      (
       CASE
       WHEN (length(CAST(floor(msgid_is_expired.timestamp) AS string)) = 13)
       THEN ': milliseconds?'
       ELSE ''
       END
      )
     )
    )
    END
   )
   AS boolean
  ),
  (
   CASE
   WHEN (msgid_is_expired.timestamp IS NOT NULL)
   THEN (
    (
     (
      CASE
      WHEN (coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint)) BETWEEN 0 AND 4294967295L)
      THEN coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint))
      ELSE CAST(
       raise_error(
        concat(
         'expiry must be an integer of 0 to 4294967295 seconds, got ',
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
     TRY_CAST(
      floor((msgid_is_expired.timestamp * 1000000)) AS bigint
     )
     <= (
      TRY_CAST(
       floor((msgid_is_expired.now * 1000000)) AS bigint
      )
      - (
       (
        CASE
        WHEN (coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint)) BETWEEN 0 AND 4294967295L)
        THEN coalesce(CAST(msgid_is_expired.expiry AS bigint), CAST(0 AS bigint))
        ELSE CAST(
         raise_error(
          concat(
           'expiry must be an integer of 0 to 4294967295 seconds, got ',
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
    )
   )
   END
  )
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION _msgid_to_iggy_id_of_text(
 id STRING
)
COMMENT 'Return the 16 bytes of an Iggy message\'s ID from its text; the reverse of `id_from_iggy_id`.'
RETURN (
 CASE
 WHEN (
  (
   ((octet_length(_msgid_to_iggy_id_of_text.id) = 34) AND startswith(_msgid_to_iggy_id_of_text.id, '01'))
   AND (octet_length(unhex(_msgid_to_iggy_id_of_text.id)) = 17)
  )
  AND (unhex(_msgid_to_iggy_id_of_text.id) IS NOT NULL)
 )
 THEN unhex(substring(_msgid_to_iggy_id_of_text.id, 3, 32))
 WHEN (
  (
   (octet_length(_msgid_to_iggy_id_of_text.id) = 36)
   AND (
    octet_length(
     regexp_replace(_msgid_to_iggy_id_of_text.id, '\\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\\z', '$1$2$3$4$5')
    )
    = 32
   )
  )
  AND (
   unhex(
    regexp_replace(_msgid_to_iggy_id_of_text.id, '\\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\\z', '$1$2$3$4$5')
   )
   IS NOT NULL
  )
 )
 THEN unhex(
  regexp_replace(_msgid_to_iggy_id_of_text.id, '\\A(.{8})-(.{4})-(.{4})-(.{4})-(.{12})\\z', '$1$2$3$4$5')
 )
 END
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_iggy_id(
 id STRING
)
COMMENT 'Return the 16 bytes of an Iggy message\'s ID from its text; the reverse of `id_from_iggy_id`. Example: hex(msgid_to_iggy_id(\'74b158ca-ddb3-498f-b0a9-9eec1c6197ae\')) = 74B158CADDB3498FB0A99EEC1C6197AE'
RETURN _msgid_to_iggy_id_of_text(
 (
  CASE
  WHEN (
   (octet_length(msgid_to_iggy_id.id) IN (16, 17, 28, 29))
   AND regexp_like(msgid_to_iggy_id.id, '[\\x00-\\x08\\x0E-\\x1F\\x7F\\uFFFD]')
  )
  THEN hex(msgid_to_iggy_id.id)
  ELSE msgid_to_iggy_id.id
  END
 )
);

CREATE OR REPLACE TEMPORARY FUNCTION msgid_assign(
)
COMMENT 'Return a new ID for each row: the run\'s own node, the partition as pid, the row\'s number as sequence.'
RETURN concat(
 (
  SELECT upper(
   concat('01', left(digest, 1), '7', substring(digest, 2, 10))
  )
  FROM (SELECT sha2(concat(uuid(), CAST(unix_micros(now()) AS STRING)), 256) AS digest FROM VALUES (0))
 ),
 coalesce(
  concat(
   get(
    split(/* 256 entries: 0000 to 00FF; CRC-32 F72C32B2 */),
    CAST((spark_partition_id() | CAST((shiftright(monotonically_increasing_id(), 24) & 256) AS int)) AS int)
   ),
   concat(
    CAST(
     substring(
      CAST(hex((((unix_seconds(now()) - 1609459200) & 4294967295L) | 4294967296L)) AS binary), 2, 8
     )
     AS string
    ),
    CAST(
     substring(
      CAST(hex(((monotonically_increasing_id() & 4294967295L) | 4294967296L)) AS binary), 2, 8
     )
     AS string
    )
   )
  ),
  (
   CASE
   WHEN (shiftright(spark_partition_id(), 8) > 0)
   THEN concat(
    get(
     split(/* 256 entries: 00 to FF; CRC-32 F5BF01C9 */), CAST(shiftright(spark_partition_id(), 8) AS int)
    ),
    get(
     split(/* 256 entries: 00 to FF; CRC-32 F5BF01C9 */),
     CAST(
      (
       (spark_partition_id() & 255) | CAST((shiftright(monotonically_increasing_id(), 24) & 256) AS int)
      )
      AS int
     )
    ),
    concat(
     CAST(
      substring(
       CAST(hex((((unix_seconds(now()) - 1609459200) & 4294967295L) | 4294967296L)) AS binary), 2, 8
      )
      AS string
     ),
     CAST(
      substring(
       CAST(hex(((monotonically_increasing_id() & 4294967295L) | 4294967296L)) AS binary), 2, 8
      )
      AS string
     )
    )
   )
   END
  ),
  raise_error(
   'assign_id numbers at most 65536 partitions of 4294967296 rows each; in a streaming query use position_id, derive_id or generate_id'
  )
 )
);
