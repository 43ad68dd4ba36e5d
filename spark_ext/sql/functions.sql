-- The SQL functions, which `spark_ext.register` creates. Written by: python scripts/sql_functions.py

-- returns BIGINT
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_word(raw BINARY)
COMMENT 'Read a binary of exactly four bytes as an unsigned big-endian integer, a bigint.'
RETURN
 (
  (
   (
    get(
     CAST(
      split(
       '2634733933,3691817142,1577077248,520502235,455081910,1511624301,3625282779,2568166656,3492275200,2434897371,321746797,1378551478,1446167259,389329664,2503496118,3560841325,122725303,1180095084,3294245082,2237415681,2168817004,3225679031,1112479233,55142362,1249746650,192671489,2306280887,3362880620,3429414913,2372848090,258091884,1315199671,3904461826,2847878617,733204335,1790295732,1856797401,799673090,2913397172,3969947759,2777964911,3834777780,1721692674,664306649,595675060,1653028463,3767260377,2710414594,1927489240,870668035,2984883637,4042245230,4109762563,3052433880,939299694,1996153525,1070472117,2127063662,4240738520,3183671555,3118153070,4175252661,2060561923,1004003288,2003620530,912958313,3026600415,4116721668,4051301481,2961147314,846423812,1937053407,977399775,2068291076,4182473906,3092057449,3159673092,4250056927,2136889961,1045965746,3979782248,2888882611,775699205,1866091230,1797492403,707133288,2821266910,3912199173,2686162181,3776832734,1662060136,571963315,638497758,1728627205,3842252979,2751615336,48191453,1138304518,3252012208,2161358187,2227859718,3318481117,1203823211,113677232,1341287088,250878827,2365127133,3456010246,3387378795,2296462768,183361286,1273736925,2558864647,3649264860,1536147050,445239217,512756700,1603697159,3717896369,2627529066,3584561258,2494456241,379749127,1470427868,1404909233,314263402,2427954652,3518092295,146914824,1237831635,3419090277,2328714430,2396297427,3486705928,1306397630,215513701,1173128037,82506430,2263224328,3353371091,3287918014,2197804133,15939283,1106593544,2459682002,3550328073,1368479679,278341220,344908297,1435014098,3615781220,2525102271,3753310655,2662369380,482110162,1572477705,1503911780,413511359,2594786313,3685694930,2104638311,1014254268,3195578378,4286503377,4217839036,3126946919,946704081,2037120778,811533834,1901688785,4082472295,2991842492,3058311377,4148973834,1967174588,877052519,3878175165,2788044902,606261968,1696899851,1631414118,540743357,2721575947,3811673552,2852486352,3942845707,1762652093,671719014,739269131,1830169552,4011510118,2921117885,3802641879,2745287692,564995770,1621841761,1689424652,632611543,2813853793,3871240634,2945091770,4002216289,1820335063,763783692,698330721,1754914746,3935649036,2878557399,2029899533,972799702,3153550432,4210109883,4276677078,3220084749,1038252731,2095319904,902885984,1960215483,4141506829,3084652758,3016086715,4072908128,1892632534,835270157,2534682808,3591520611,1411294165,353948174,285283939,1342662584,3523970318,2467165397,3661172181,2604629006,422813368,1479929699,1546398478,489315029,2670114915,3726690744,223234658,1279802297,3460618511,2403510484,2338024633,3395100002,1213333460,156732943,1080260367,23398100,2204755042,3262092729,3329642964,2272272399,92062393,1148892002',
       ','
      )
      AS array<bigint>
     ),
     CAST((crc32(_msgid_word.raw) & 255) AS int)
    )
    ^ get(
     CAST(
      split(
       '0,714592202,355003982,1069490564,709942429,13046615,1064841939,368049433,363252192,1060177450,9316270,706340964,1073091965,358734519,719256371,4797689,1800069658,1105014224,2120354900,1425392542,1092238983,1804464461,1412616393,2124750595,2129406970,1417405488,1808057780,1095961214,1421670247,2116761773,1100224809,1795413731,3600073781,4228058111,3283888763,3911968177,4240709800,3595818850,3924621030,3279632684,3274837461,3919954463,3592086427,4237110353,3915567432,3287621250,4232724230,3604869324,3185452591,2538203621,2834745441,2187397035,2542729906,3172545912,2191922428,2821839670,2826497999,2196709381,3176137089,2546454091,2183672658,2831154328,2533416220,3180794582,2888403307,2260616865,3103876901,2476124399,2256098806,2901318204,2471607224,3116790898,3113173131,2467860289,2896670405,2251317519,2480905238,3108525020,2264363608,2892021138,3345181553,3992233147,3528164671,4175186677,3979589612,3349444646,4162541986,3532428904,3536167569,4166151515,3354217695,3984229141,4170546700,3523391942,3988623426,3341442952,2059226462,1344963220,1872077584,1157786842,1357746627,2054839817,1170571149,1867690055,1864074430,1166822260,2050190064,1352967482,1162565667,1876727785,1348712045,2062842279,301444932,996171918,81740042,776507072,1000829913,288406547,781163927,68702813,72443556,784771438,293177578,1005471520,771865145,76969459,992564343,297704381,1481839319,1925504285,1299971225,1743532883,1912852042,1486094720,1730879492,1304227790,1307958071,1734481149,1490892153,1917516467,1738868650,1295173728,1921903076,1478108718,857338061,428752647,640753283,212259145,424225872,870245274,207733278,653659604,650066221,204011239,865589091,419436713,217048496,645409402,432475134,860931124,2395461346,2756712744,2616146092,2977494886,2761362047,2382415285,2982143025,2603101179,2606833410,2985742536,2387210572,2766028422,2972828575,2611350613,2753113553,2391728667,3851236600,3474651954,4037401270,3660715388,3487426661,3846842287,3673490987,4033006049,4029414680,3669766866,3842184022,3482639516,3665502597,4042059343,3478376395,3854827521,4101675964,3740095606,3780277746,3418733112,3727312673,4106062059,3405949295,3784664741,3789312604,3410730390,4109679634,3731059672,3414986433,3776659723,3735314575,4097027909,2670754214,3047667308,2316867560,2693748770,3043009851,2683792113,2689092469,2329904319,2325131334,2684452748,2680053256,3039400386,2697358555,2320605969,3052307093,2675527007,586047369,142184515,935768519,491879949,146703124,573131998,496397658,922854032,927503977,501176739,576747559,150452205,488131316,932152638,137405626,581397360,1235533203,1664315993,1552700381,1981520919,1676960014,1231269572,1994166080,1548435594,1543664755,1989524409,1227528765,1673352695,1985128686,1556440868,1668957856,1240303978',
       ','
      )
      AS array<bigint>
     ),
     CAST((shiftright(crc32(_msgid_word.raw), 8) & 255) AS int)
    )
   )
   ^ get(
    CAST(
     split(
      '0,4053816693,3795954666,333577887,2240096014,1948611195,1740934372,2523191697,168513308,4222294633,3897222390,434811267,2408474642,2116959591,1842332664,2624558733,337026616,3853962061,4132910546,133652647,2442377526,1614015555,1943147228,2188527529,505270564,4022174801,4233919182,234631099,2610492970,1782096735,2044288448,2289633461,673987697,3649857796,3396179867,1003340526,2913540991,1544113674,1340649621,3192448480,573010797,3548849688,3227965575,835096050,2812433507,1442971926,1172569993,3024333564,1010475593,3449485116,3732605347,802905302,3116336455,1210044466,1543384749,2858318808,909241685,3348215840,3564127935,634393546,3014969947,1108647726,1375035825,2689938628,1347975394,2717396375,2988036872,1136232061,3588055020,612174489,933032966,3325862259,1515403262,2884854411,3088227348,1236453729,3755348208,779502981,1033354010,3426217583,1146021594,3052319663,2786020656,1471092805,3251356116,812356769,596273726,3525984075,1313188294,3219520691,2885943852,1571051353,3418394312,979426237,696329506,3626070103,2020885651,2312376806,2587225977,1804974604,4260455325,206649064,531679351,3994066178,1920928655,2212454138,2420023397,1637807376,4160367745,106592756,364611435,3827028510,1818417835,2646773726,2384687425,2139300916,3924295077,407349456,195450447,4194698042,1718195639,2546581698,2217229917,1971874600,3823940281,307029964,28121427,4027403302,3786834207,269931626,66530037,4065820544,1681106449,2509501284,2255621627,2010273934,3955084803,438147958,167536105,4166791324,1849223437,2677587064,2356757223,2111379346,4120911655,67127890,400667853,3863077304,1881487401,2173005148,2456064963,1673840310,4289417275,235603278,501939153,3964317348,2049865525,2341347904,2557467871,1775208874,3382361454,943384603,735778436,3665511409,1277139552,3183464213,2925408650,1610507519,3281121906,842114823,567302552,3497004269,1175770492,3082059785,2757066390,1442130915,3716948822,741111331,1070434492,3463306697,1476985944,2846445869,3125325746,1273559751,3615976522,640104767,902219680,3295056597,1375882052,2745310769,2957238446,1105442267,2985228797,1078897800,1403998743,2718893922,879484659,3318451078,3593106713,663363692,3152393953,1246094228,1503927563,2818852990,1046516207,3485516954,3693165061,763457392,2784520133,1415066288,1203358767,3055130970,545079499,3520927166,3258772257,865910356,2951948505,1582529964,1303544627,3155351110,712380375,3688258210,3359089725,966259016,2579678604,1751290105,2072211046,2317564691,474473090,3991386103,4261824872,262544413,2479458960,1651105765,1904746874,2150134799,374123934,3891067115,4094494324,95245057,2379504564,2087980737,1872097374,2654315819,139558074,4193331663,3926972240,464552485,2279543976,1988051421,1704902466,2487151159,39465894,4093273811,3759904844,297520441',
      ','
     )
     AS array<bigint>
    ),
    CAST((shiftright(crc32(_msgid_word.raw), 16) & 255) AS int)
   )
  )
  ^ get(
   CAST(
    split(
     '0,3261924159,2228946558,1186334017,146214396,3403288259,2355891074,1308690621,1365797411,2466605340,3585305693,400453474,1507813343,2612159712,3708051873,527000222,2731594822,1623054201,638308920,3831943431,2858932666,1745541765,784129988,3973176571,4088970853,836091226,2003023899,3037641508,4212110233,962769062,2144646631,3183064792,1151445389,2261559986,3229265907,35105996,1276552305,2390468430,3368919567,178299184,365544366,3617898641,2433926608,1400882927,494849618,3742616941,2577778732,1539885843,3866197451,605847284,1655339957,2697427082,4005982263,749433608,1780315721,2825942390,3071875048,1970541783,868356502,4054782633,3215858196,2109937963,997530730,4179107669,3376685760,187245055,1302275262,2415011713,3253940028,60697603,1160259906,2269457021,2553039075,1514228700,485969565,3734654370,2426094879,1391871520,339755873,3593289822,1804924550,2851730873,4014993656,757265351,1663302522,2706307141,3891854596,630586939,989633701,4170293146,3190266587,2085263844,843813209,4029059686,3062929191,1962775576,2380630861,1334347890,155094323,3411250700,2236778161,1195345294,25788623,3286533104,3700285806,518054481,1482090256,2587616303,3560631442,374861741,1356983020,2458708435,792026891,3981990964,2884524405,1770216010,662852343,3857666504,2740540553,1630820278,2120037672,3157276183,4203098966,954937449,1995061460,3028761579,4063313578,811351445,3549377883,300037732,1465135909,2503553050,3677894823,425016216,1608728281,2643344870,2196201336,1082809415,104618246,3293665849,2320519812,1211978171,244012282,3437647813,1902108957,3006456354,4119127907,938075228,2045308129,3146117086,4248038047,1063184800,540511038,3797583873,2766966080,1719766655,679511746,3941434877,2891677884,1849066371,2536414422,1430495209,334863016,3516438935,2677641514,1576309269,457348948,3643774059,3326539509,69989834,1117646987,2163274676,3471964937,211613750,1244331383,2286419528,905857168,4153625519,2972012270,1934118353,1028212076,4280567379,3113370386,2080325677,1687560883,2801475980,3763152077,572532722,1814114127,2924227696,3908708657,714549774,449517467,3634762916,2651853285,1551700698,310123111,3490781528,2527534105,1422532390,1269005752,2312011399,3480779718,219511033,1125412932,2172220283,3352262202,94532869,3088827357,2054602978,1019266467,4272801436,2964114977,1925303582,880265311,4128951136,3916671486,723430081,1839771520,2948967615,3787760642,598320957,1696572028,2809307459,1584053782,2617752873,3669080168,417119063,1457370090,2494607573,3523655060,275494571,251843637,3446658826,2346308171,1236586868,129358281,3319323382,2205081527,1090772104,4240075344,1054304623,2019650606,3121377041,4094519212,912286867,1893097938,2998625005,2916221043,1874789196,688457229,3949200690,2774863247,1728581296,566103025,3822258382',
     ','
    )
    AS array<bigint>
   ),
   CAST((shiftright(crc32(_msgid_word.raw), 24) & 255) AS int)
  )
 )
;

-- returns STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP_LTZ, sequence: BIGINT, origin: STRING>
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v1_fields(octet1 INT, octet2 INT, octet3 INT, octet4 INT, octet5 INT, octet6 INT, pid BIGINT, seconds BIGINT, sequence BIGINT)
COMMENT 'Return the fields of a version-1 ID as a struct.'
RETURN
 named_struct(
  'version',
  1,
  'mac',
  concat(
   get(
    split(
     'ff:,b0:,05:,4a:,44:,0b:,be:,f1:,c6:,89:,3c:,73:,7d:,32:,87:,c8:,8d:,c2:,77:,38:,36:,79:,cc:,83:,b4:,fb:,4e:,01:,0f:,40:,f5:,ba:,7f:,30:,85:,ca:,c4:,8b:,3e:,71:,46:,09:,bc:,f3:,fd:,b2:,07:,48:,0d:,42:,f7:,b8:,b6:,f9:,4c:,03:,34:,7b:,ce:,81:,8f:,c0:,75:,3a:,d4:,9b:,2e:,61:,6f:,20:,95:,da:,ed:,a2:,17:,58:,56:,19:,ac:,e3:,a6:,e9:,5c:,13:,1d:,52:,e7:,a8:,9f:,d0:,65:,2a:,24:,6b:,de:,91:,54:,1b:,ae:,e1:,ef:,a0:,15:,5a:,6d:,22:,97:,d8:,d6:,99:,2c:,63:,26:,69:,dc:,93:,9d:,d2:,67:,28:,1f:,50:,e5:,aa:,a4:,eb:,5e:,11:,cd:,82:,37:,78:,76:,39:,8c:,c3:,f4:,bb:,0e:,41:,4f:,00:,b5:,fa:,bf:,f0:,45:,0a:,04:,4b:,fe:,b1:,86:,c9:,7c:,33:,3d:,72:,c7:,88:,4d:,02:,b7:,f8:,f6:,b9:,0c:,43:,74:,3b:,8e:,c1:,cf:,80:,35:,7a:,3f:,70:,c5:,8a:,84:,cb:,7e:,31:,06:,49:,fc:,b3:,bd:,f2:,47:,08:,e6:,a9:,1c:,53:,5d:,12:,a7:,e8:,df:,90:,25:,6a:,64:,2b:,9e:,d1:,94:,db:,6e:,21:,2f:,60:,d5:,9a:,ad:,e2:,57:,18:,16:,59:,ec:,a3:,66:,29:,9c:,d3:,dd:,92:,27:,68:,5f:,10:,a5:,ea:,e4:,ab:,1e:,51:,14:,5b:,ee:,a1:,af:,e0:,55:,1a:,2d:,62:,d7:,98:,96:,d9:,6c:,23:',
     ','
    ),
    _msgid_v1_fields.octet1
   ),
   get(
    split(
     'ff:,b0:,05:,4a:,44:,0b:,be:,f1:,c6:,89:,3c:,73:,7d:,32:,87:,c8:,8d:,c2:,77:,38:,36:,79:,cc:,83:,b4:,fb:,4e:,01:,0f:,40:,f5:,ba:,7f:,30:,85:,ca:,c4:,8b:,3e:,71:,46:,09:,bc:,f3:,fd:,b2:,07:,48:,0d:,42:,f7:,b8:,b6:,f9:,4c:,03:,34:,7b:,ce:,81:,8f:,c0:,75:,3a:,d4:,9b:,2e:,61:,6f:,20:,95:,da:,ed:,a2:,17:,58:,56:,19:,ac:,e3:,a6:,e9:,5c:,13:,1d:,52:,e7:,a8:,9f:,d0:,65:,2a:,24:,6b:,de:,91:,54:,1b:,ae:,e1:,ef:,a0:,15:,5a:,6d:,22:,97:,d8:,d6:,99:,2c:,63:,26:,69:,dc:,93:,9d:,d2:,67:,28:,1f:,50:,e5:,aa:,a4:,eb:,5e:,11:,cd:,82:,37:,78:,76:,39:,8c:,c3:,f4:,bb:,0e:,41:,4f:,00:,b5:,fa:,bf:,f0:,45:,0a:,04:,4b:,fe:,b1:,86:,c9:,7c:,33:,3d:,72:,c7:,88:,4d:,02:,b7:,f8:,f6:,b9:,0c:,43:,74:,3b:,8e:,c1:,cf:,80:,35:,7a:,3f:,70:,c5:,8a:,84:,cb:,7e:,31:,06:,49:,fc:,b3:,bd:,f2:,47:,08:,e6:,a9:,1c:,53:,5d:,12:,a7:,e8:,df:,90:,25:,6a:,64:,2b:,9e:,d1:,94:,db:,6e:,21:,2f:,60:,d5:,9a:,ad:,e2:,57:,18:,16:,59:,ec:,a3:,66:,29:,9c:,d3:,dd:,92:,27:,68:,5f:,10:,a5:,ea:,e4:,ab:,1e:,51:,14:,5b:,ee:,a1:,af:,e0:,55:,1a:,2d:,62:,d7:,98:,96:,d9:,6c:,23:',
     ','
    ),
    _msgid_v1_fields.octet2
   ),
   get(
    split(
     'ff:,b0:,05:,4a:,44:,0b:,be:,f1:,c6:,89:,3c:,73:,7d:,32:,87:,c8:,8d:,c2:,77:,38:,36:,79:,cc:,83:,b4:,fb:,4e:,01:,0f:,40:,f5:,ba:,7f:,30:,85:,ca:,c4:,8b:,3e:,71:,46:,09:,bc:,f3:,fd:,b2:,07:,48:,0d:,42:,f7:,b8:,b6:,f9:,4c:,03:,34:,7b:,ce:,81:,8f:,c0:,75:,3a:,d4:,9b:,2e:,61:,6f:,20:,95:,da:,ed:,a2:,17:,58:,56:,19:,ac:,e3:,a6:,e9:,5c:,13:,1d:,52:,e7:,a8:,9f:,d0:,65:,2a:,24:,6b:,de:,91:,54:,1b:,ae:,e1:,ef:,a0:,15:,5a:,6d:,22:,97:,d8:,d6:,99:,2c:,63:,26:,69:,dc:,93:,9d:,d2:,67:,28:,1f:,50:,e5:,aa:,a4:,eb:,5e:,11:,cd:,82:,37:,78:,76:,39:,8c:,c3:,f4:,bb:,0e:,41:,4f:,00:,b5:,fa:,bf:,f0:,45:,0a:,04:,4b:,fe:,b1:,86:,c9:,7c:,33:,3d:,72:,c7:,88:,4d:,02:,b7:,f8:,f6:,b9:,0c:,43:,74:,3b:,8e:,c1:,cf:,80:,35:,7a:,3f:,70:,c5:,8a:,84:,cb:,7e:,31:,06:,49:,fc:,b3:,bd:,f2:,47:,08:,e6:,a9:,1c:,53:,5d:,12:,a7:,e8:,df:,90:,25:,6a:,64:,2b:,9e:,d1:,94:,db:,6e:,21:,2f:,60:,d5:,9a:,ad:,e2:,57:,18:,16:,59:,ec:,a3:,66:,29:,9c:,d3:,dd:,92:,27:,68:,5f:,10:,a5:,ea:,e4:,ab:,1e:,51:,14:,5b:,ee:,a1:,af:,e0:,55:,1a:,2d:,62:,d7:,98:,96:,d9:,6c:,23:',
     ','
    ),
    _msgid_v1_fields.octet3
   ),
   get(
    split(
     'ff:,b0:,05:,4a:,44:,0b:,be:,f1:,c6:,89:,3c:,73:,7d:,32:,87:,c8:,8d:,c2:,77:,38:,36:,79:,cc:,83:,b4:,fb:,4e:,01:,0f:,40:,f5:,ba:,7f:,30:,85:,ca:,c4:,8b:,3e:,71:,46:,09:,bc:,f3:,fd:,b2:,07:,48:,0d:,42:,f7:,b8:,b6:,f9:,4c:,03:,34:,7b:,ce:,81:,8f:,c0:,75:,3a:,d4:,9b:,2e:,61:,6f:,20:,95:,da:,ed:,a2:,17:,58:,56:,19:,ac:,e3:,a6:,e9:,5c:,13:,1d:,52:,e7:,a8:,9f:,d0:,65:,2a:,24:,6b:,de:,91:,54:,1b:,ae:,e1:,ef:,a0:,15:,5a:,6d:,22:,97:,d8:,d6:,99:,2c:,63:,26:,69:,dc:,93:,9d:,d2:,67:,28:,1f:,50:,e5:,aa:,a4:,eb:,5e:,11:,cd:,82:,37:,78:,76:,39:,8c:,c3:,f4:,bb:,0e:,41:,4f:,00:,b5:,fa:,bf:,f0:,45:,0a:,04:,4b:,fe:,b1:,86:,c9:,7c:,33:,3d:,72:,c7:,88:,4d:,02:,b7:,f8:,f6:,b9:,0c:,43:,74:,3b:,8e:,c1:,cf:,80:,35:,7a:,3f:,70:,c5:,8a:,84:,cb:,7e:,31:,06:,49:,fc:,b3:,bd:,f2:,47:,08:,e6:,a9:,1c:,53:,5d:,12:,a7:,e8:,df:,90:,25:,6a:,64:,2b:,9e:,d1:,94:,db:,6e:,21:,2f:,60:,d5:,9a:,ad:,e2:,57:,18:,16:,59:,ec:,a3:,66:,29:,9c:,d3:,dd:,92:,27:,68:,5f:,10:,a5:,ea:,e4:,ab:,1e:,51:,14:,5b:,ee:,a1:,af:,e0:,55:,1a:,2d:,62:,d7:,98:,96:,d9:,6c:,23:',
     ','
    ),
    _msgid_v1_fields.octet4
   ),
   get(
    split(
     'ff:,b0:,05:,4a:,44:,0b:,be:,f1:,c6:,89:,3c:,73:,7d:,32:,87:,c8:,8d:,c2:,77:,38:,36:,79:,cc:,83:,b4:,fb:,4e:,01:,0f:,40:,f5:,ba:,7f:,30:,85:,ca:,c4:,8b:,3e:,71:,46:,09:,bc:,f3:,fd:,b2:,07:,48:,0d:,42:,f7:,b8:,b6:,f9:,4c:,03:,34:,7b:,ce:,81:,8f:,c0:,75:,3a:,d4:,9b:,2e:,61:,6f:,20:,95:,da:,ed:,a2:,17:,58:,56:,19:,ac:,e3:,a6:,e9:,5c:,13:,1d:,52:,e7:,a8:,9f:,d0:,65:,2a:,24:,6b:,de:,91:,54:,1b:,ae:,e1:,ef:,a0:,15:,5a:,6d:,22:,97:,d8:,d6:,99:,2c:,63:,26:,69:,dc:,93:,9d:,d2:,67:,28:,1f:,50:,e5:,aa:,a4:,eb:,5e:,11:,cd:,82:,37:,78:,76:,39:,8c:,c3:,f4:,bb:,0e:,41:,4f:,00:,b5:,fa:,bf:,f0:,45:,0a:,04:,4b:,fe:,b1:,86:,c9:,7c:,33:,3d:,72:,c7:,88:,4d:,02:,b7:,f8:,f6:,b9:,0c:,43:,74:,3b:,8e:,c1:,cf:,80:,35:,7a:,3f:,70:,c5:,8a:,84:,cb:,7e:,31:,06:,49:,fc:,b3:,bd:,f2:,47:,08:,e6:,a9:,1c:,53:,5d:,12:,a7:,e8:,df:,90:,25:,6a:,64:,2b:,9e:,d1:,94:,db:,6e:,21:,2f:,60:,d5:,9a:,ad:,e2:,57:,18:,16:,59:,ec:,a3:,66:,29:,9c:,d3:,dd:,92:,27:,68:,5f:,10:,a5:,ea:,e4:,ab:,1e:,51:,14:,5b:,ee:,a1:,af:,e0:,55:,1a:,2d:,62:,d7:,98:,96:,d9:,6c:,23:',
     ','
    ),
    _msgid_v1_fields.octet5
   ),
   get(
    split(
     'ff,b0,05,4a,44,0b,be,f1,c6,89,3c,73,7d,32,87,c8,8d,c2,77,38,36,79,cc,83,b4,fb,4e,01,0f,40,f5,ba,7f,30,85,ca,c4,8b,3e,71,46,09,bc,f3,fd,b2,07,48,0d,42,f7,b8,b6,f9,4c,03,34,7b,ce,81,8f,c0,75,3a,d4,9b,2e,61,6f,20,95,da,ed,a2,17,58,56,19,ac,e3,a6,e9,5c,13,1d,52,e7,a8,9f,d0,65,2a,24,6b,de,91,54,1b,ae,e1,ef,a0,15,5a,6d,22,97,d8,d6,99,2c,63,26,69,dc,93,9d,d2,67,28,1f,50,e5,aa,a4,eb,5e,11,cd,82,37,78,76,39,8c,c3,f4,bb,0e,41,4f,00,b5,fa,bf,f0,45,0a,04,4b,fe,b1,86,c9,7c,33,3d,72,c7,88,4d,02,b7,f8,f6,b9,0c,43,74,3b,8e,c1,cf,80,35,7a,3f,70,c5,8a,84,cb,7e,31,06,49,fc,b3,bd,f2,47,08,e6,a9,1c,53,5d,12,a7,e8,df,90,25,6a,64,2b,9e,d1,94,db,6e,21,2f,60,d5,9a,ad,e2,57,18,16,59,ec,a3,66,29,9c,d3,dd,92,27,68,5f,10,a5,ea,e4,ab,1e,51,14,5b,ee,a1,af,e0,55,1a,2d,62,d7,98,96,d9,6c,23',
     ','
    ),
    _msgid_v1_fields.octet6
   )
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
  get(
   split(
    'derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random',
    ','
   ),
   _msgid_v1_fields.octet1
  )
 )
;

-- returns STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP_LTZ, sequence: BIGINT, origin: STRING>
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v1_of_bytes(raw BINARY)
COMMENT 'Return the fields of the 17 bytes of an ID; NULL for NULL.'
RETURN
 (
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
 )
;

-- returns STRUCT<kind: STRING, host: STRING, port: INT, offset: BIGINT, pid: INT, loader_hash: BIGINT, elapsed_ms: BIGINT, counter: INT>
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v0_fields(host STRING, kind STRING, is_broker BOOLEAN, port BIGINT, high BIGINT, low BIGINT)
COMMENT 'Return the fields of a version-0 ID as a struct.'
RETURN
 named_struct(
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
 )
;

-- returns BIGINT
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_time_of_month(elapsed BIGINT, latest BIGINT, zone STRING)
COMMENT 'Return the last time that is ``elapsed`` milliseconds after the start of its month, up to ``latest``.'
RETURN
 greatest(
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
   + (
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
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
    THEN 0
    END
   )
  ),
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
   + (
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
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
    THEN 0
    END
   )
  ),
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
   + (
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
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
    THEN 0
    END
   )
  ),
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
   + (
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
                  )
                  - pmod(
                   unix_micros(
                    from_utc_timestamp(
                     timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                    )
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
                   from_utc_timestamp(
                    timestamp_micros(_msgid_time_of_month.latest), _msgid_time_of_month.zone
                   )
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
    THEN 0
    END
   )
  )
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_position(source STRING, offset DOUBLE, at DECIMAL(38, 18))
COMMENT 'Return the ID of a message at a position of an ordered log, as `msgid.position_id` does. Example: msgid_position(\'kafka://orders/3\', 1234, 1648047038) = 013B0121EF30BE0000024CCDBE000004D2'
RETURN
 coalesce(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_derive_of_text(parent STRING, name STRING)
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does.'
RETURN
 coalesce(
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
      THEN 'a UUID is not a message ID, but a derived ID can have it as its parent'
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_derive(parent STRING, name STRING)
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does. Example: msgid_derive(\'0156F7E71C361B21BC024CCDBE00000007\', \'invoice\') = 014FC1DBF6558F1AE2024CCDBE24D71D0F'
RETURN
 _msgid_derive_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_derive_at_of_text(parent STRING, name STRING, at DECIMAL(38, 18))
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does.'
RETURN
 coalesce(
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
      THEN 'a UUID is not a message ID, but a derived ID can have it as its parent'
      WHEN (NOT (length(_msgid_derive_at_of_text.parent) IN (32, 56, 34, 58)))
      THEN concat(
       'must have 32, 34, 56 or 58 hex digits, got ',
       CAST(length(_msgid_derive_at_of_text.parent) AS string),
       ' characters'
      )
      WHEN (
       (_msgid_derive_at_of_text.parent IS NOT NULL) AND (unhex(_msgid_derive_at_of_text.parent) IS NULL)
      )
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_derive_at(parent STRING, name STRING, at DECIMAL(38, 18))
COMMENT 'Return the ID of an output of a message, as `msgid.derive_id` does. Example: msgid_derive_at(\'74b158ca-ddb3-498f-b0a9-9eec1c6197ae\', \'invoice\', 1648047038) = 01DF2BEBB496D4B448024CCDBEF5D12B8E'
RETURN
 _msgid_derive_at_of_text(
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
 )
;

-- returns STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP_LTZ, sequence: BIGINT, origin: STRING>
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_parse_of_text(id STRING)
COMMENT 'Parse a version-1 ID.'
RETURN
 coalesce(
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
      THEN 'a UUID is not a message ID, but a derived ID can have it as its parent'
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
        (octet_length(_msgid_parse_of_text.id) IN (34, 58))
        AND (NOT startswith(_msgid_parse_of_text.id, '00'))
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
 )
;

-- returns STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP_LTZ, sequence: BIGINT, origin: STRING>
CREATE OR REPLACE TEMPORARY FUNCTION msgid_parse(id STRING)
COMMENT 'Parse a version-1 ID. Example: msgid_parse(\'0156F7E71C361B21BC024CCDBE00000007\').pid = 8636'
RETURN
 _msgid_parse_of_text(
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
 )
;

-- returns STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP_LTZ, sequence: BIGINT, origin: STRING>
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_try_parse_of_text(id STRING)
COMMENT 'Parse a version-1 ID, as `parse_id` does; NULL for any other value.'
RETURN
 _msgid_v1_of_bytes(
  (
   CASE
   WHEN ((octet_length(_msgid_try_parse_of_text.id) = 34) AND startswith(_msgid_try_parse_of_text.id, '01'))
   THEN unhex(_msgid_try_parse_of_text.id)
   END
  )
 )
;

-- returns STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP_LTZ, sequence: BIGINT, origin: STRING>
CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_parse(id STRING)
COMMENT 'Parse a version-1 ID, as `parse_id` does; NULL for any other value. Example: msgid_try_parse(\'n/a\') = NULL'
RETURN
 _msgid_try_parse_of_text(
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
 )
;

-- returns BOOLEAN
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_is_valid_of_text(id STRING)
COMMENT 'Return whether a value is an ID of any version, as `msgid.is_valid` does.'
RETURN
 (
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
 )
;

-- returns BOOLEAN
CREATE OR REPLACE TEMPORARY FUNCTION msgid_is_valid(id STRING)
COMMENT 'Return whether a value is an ID of any version, as `msgid.is_valid` does. Example: msgid_is_valid(\'7F0000010000238F000000000001E240\') = true'
RETURN
 _msgid_is_valid_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_kind_of_text(id STRING)
COMMENT 'Return the kind of an ID.'
RETURN
 (
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_kind(id STRING)
COMMENT 'Return the kind of an ID. Example: msgid_kind(\'7F0000010000238F000000000001E240\') = v0-broker-offset'
RETURN
 _msgid_kind_of_text(
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
 )
;

-- returns TIMESTAMP_LTZ
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_time_of_text(id STRING)
COMMENT 'Return the time of a version-1 ID.'
RETURN
 timestamp_seconds(
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
 )
;

-- returns TIMESTAMP_LTZ
CREATE OR REPLACE TEMPORARY FUNCTION msgid_time(id STRING)
COMMENT 'Return the time of a version-1 ID. Example: msgid_time(\'0156F7E71C361B21BC024CCDBE00000007\') = 2022-03-23 14:50:38'
RETURN
 _msgid_time_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_origin_of_text(id STRING)
COMMENT 'Return the origin that a version-1 ID declares: ``mac``, ``random``, ``assigned``, ``position`` or ``derived``.'
RETURN
 get(
  split(
   'derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,random,mac,assigned,mac,mac,random,mac,random,mac,position,mac,random,derived,mac,random,mac,derived,mac,random,mac,mac,position,mac,random,mac,random,mac,random,random,mac,assigned,mac,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random,mac,random,mac,random,random,mac,assigned,mac,derived,mac,random,mac,mac,position,mac,random,mac,position,mac,random,derived,mac,random,mac,random,mac,assigned,mac,mac,random,mac,random',
   ','
  ),
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_origin(id STRING)
COMMENT 'Return the origin that a version-1 ID declares: ``mac``, ``random``, ``assigned``, ``position`` or ``derived``. Example: msgid_origin(\'0156F7E71C361B21BC024CCDBE00000007\') = mac'
RETURN
 _msgid_origin_of_text(
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
 )
;

-- returns BINARY
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_time_key_of_text(id STRING)
COMMENT 'Return 16 bytes that sort version-1 IDs by (seconds, sequence, node, pid), as `msgid.MessageId.time_key` does.'
RETURN
 (
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
 )
;

-- returns BINARY
CREATE OR REPLACE TEMPORARY FUNCTION msgid_time_key(id STRING)
COMMENT 'Return 16 bytes that sort version-1 IDs by (seconds, sequence, node, pid), as `msgid.MessageId.time_key` does. Example: hex(msgid_time_key(\'0156F7E71C361B21BC024CCDBE00000007\')) = 024CCDBE0000000756F7E71C361B21BC'
RETURN
 _msgid_time_key_of_text(
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
 )
;

-- returns BINARY
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_to_binary_of_text(id STRING)
COMMENT 'Return an ID\'s bytes: 17 for version 1, and for version 0 the bytes of its text.'
RETURN
 (
  CASE
  WHEN (
   (
    CASE
    WHEN (
     ((octet_length(_msgid_to_binary_of_text.id) = 34) AND startswith(_msgid_to_binary_of_text.id, '01'))
     OR (
      (octet_length(_msgid_to_binary_of_text.id) IN (34, 58))
      AND startswith(_msgid_to_binary_of_text.id, '00')
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
 )
;

-- returns BINARY
CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_binary(id STRING)
COMMENT 'Return an ID\'s bytes: 17 for version 1, and for version 0 the bytes of its text. Example: hex(msgid_to_binary(\'0156F7E71C361B21BC024CCDBE00000007\')) = 0156F7E71C361B21BC024CCDBE00000007'
RETURN
 _msgid_to_binary_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_from_binary_of_text(id STRING)
COMMENT 'Return the text of an ID from its bytes.'
RETURN
 (
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_binary(id STRING)
COMMENT 'Return the text of an ID from its bytes. Example: msgid_from_binary(X\'0156F7E71C361B21BC024CCDBE00000007\') = 0156F7E71C361B21BC024CCDBE00000007'
RETURN
 _msgid_from_binary_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_to_uuid_of_text(id STRING)
COMMENT 'Return the 16 bytes after the version byte of a version-1 ID as a UUID, as `msgid.MessageId.uuid` does.'
RETURN
 (
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_to_uuid(id STRING)
COMMENT 'Return the 16 bytes after the version byte of a version-1 ID as a UUID, as `msgid.MessageId.uuid` does. Example: msgid_to_uuid(\'0156F7E71C361B21BC024CCDBE00000007\') = 56f7e71c-361b-21bc-024c-cdbe00000007'
RETURN
 _msgid_to_uuid_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_uuid(uuid STRING)
COMMENT 'Return the version-1 ID of a UUID that `id_to_uuid` made. Example: msgid_from_uuid(\'56f7e71c-361b-21bc-024c-cdbe00000007\') = 0156F7E71C361B21BC024CCDBE00000007'
RETURN
 (
  CASE
  WHEN (
   (octet_length(msgid_from_uuid.uuid) = 36)
   AND regexp_like(msgid_from_uuid.uuid, '\\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\\z')
  )
  THEN concat('01', upper(regexp_replace(msgid_from_uuid.uuid, '-', '')))
  END
 )
;

-- returns STRUCT<kind: STRING, host: STRING, port: INT, offset: BIGINT, pid: INT, loader_hash: BIGINT, elapsed_ms: BIGINT, counter: INT>
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_parse_v0_of_text(id STRING)
COMMENT 'Parse a version-0 ID: a broker\'s offset, or a client\'s IP address, pid, time and counter.'
RETURN
 coalesce(
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
       split(
        '255.,176.,5.,74.,68.,11.,190.,241.,198.,137.,60.,115.,125.,50.,135.,200.,141.,194.,119.,56.,54.,121.,204.,131.,180.,251.,78.,1.,15.,64.,245.,186.,127.,48.,133.,202.,196.,139.,62.,113.,70.,9.,188.,243.,253.,178.,7.,72.,13.,66.,247.,184.,182.,249.,76.,3.,52.,123.,206.,129.,143.,192.,117.,58.,212.,155.,46.,97.,111.,32.,149.,218.,237.,162.,23.,88.,86.,25.,172.,227.,166.,233.,92.,19.,29.,82.,231.,168.,159.,208.,101.,42.,36.,107.,222.,145.,84.,27.,174.,225.,239.,160.,21.,90.,109.,34.,151.,216.,214.,153.,44.,99.,38.,105.,220.,147.,157.,210.,103.,40.,31.,80.,229.,170.,164.,235.,94.,17.,205.,130.,55.,120.,118.,57.,140.,195.,244.,187.,14.,65.,79.,0.,181.,250.,191.,240.,69.,10.,4.,75.,254.,177.,134.,201.,124.,51.,61.,114.,199.,136.,77.,2.,183.,248.,246.,185.,12.,67.,116.,59.,142.,193.,207.,128.,53.,122.,63.,112.,197.,138.,132.,203.,126.,49.,6.,73.,252.,179.,189.,242.,71.,8.,230.,169.,28.,83.,93.,18.,167.,232.,223.,144.,37.,106.,100.,43.,158.,209.,148.,219.,110.,33.,47.,96.,213.,154.,173.,226.,87.,24.,22.,89.,236.,163.,102.,41.,156.,211.,221.,146.,39.,104.,95.,16.,165.,234.,228.,171.,30.,81.,20.,91.,238.,161.,175.,224.,85.,26.,45.,98.,215.,152.,150.,217.,108.,35.',
        ','
       ),
       CAST((crc32(substring(unhex(_msgid_parse_v0_of_text.id), -16, 1)) & 255) AS int)
      ),
      get(
       split(
        '255.,176.,5.,74.,68.,11.,190.,241.,198.,137.,60.,115.,125.,50.,135.,200.,141.,194.,119.,56.,54.,121.,204.,131.,180.,251.,78.,1.,15.,64.,245.,186.,127.,48.,133.,202.,196.,139.,62.,113.,70.,9.,188.,243.,253.,178.,7.,72.,13.,66.,247.,184.,182.,249.,76.,3.,52.,123.,206.,129.,143.,192.,117.,58.,212.,155.,46.,97.,111.,32.,149.,218.,237.,162.,23.,88.,86.,25.,172.,227.,166.,233.,92.,19.,29.,82.,231.,168.,159.,208.,101.,42.,36.,107.,222.,145.,84.,27.,174.,225.,239.,160.,21.,90.,109.,34.,151.,216.,214.,153.,44.,99.,38.,105.,220.,147.,157.,210.,103.,40.,31.,80.,229.,170.,164.,235.,94.,17.,205.,130.,55.,120.,118.,57.,140.,195.,244.,187.,14.,65.,79.,0.,181.,250.,191.,240.,69.,10.,4.,75.,254.,177.,134.,201.,124.,51.,61.,114.,199.,136.,77.,2.,183.,248.,246.,185.,12.,67.,116.,59.,142.,193.,207.,128.,53.,122.,63.,112.,197.,138.,132.,203.,126.,49.,6.,73.,252.,179.,189.,242.,71.,8.,230.,169.,28.,83.,93.,18.,167.,232.,223.,144.,37.,106.,100.,43.,158.,209.,148.,219.,110.,33.,47.,96.,213.,154.,173.,226.,87.,24.,22.,89.,236.,163.,102.,41.,156.,211.,221.,146.,39.,104.,95.,16.,165.,234.,228.,171.,30.,81.,20.,91.,238.,161.,175.,224.,85.,26.,45.,98.,215.,152.,150.,217.,108.,35.',
        ','
       ),
       CAST((crc32(substring(unhex(_msgid_parse_v0_of_text.id), -15, 1)) & 255) AS int)
      ),
      get(
       split(
        '255.,176.,5.,74.,68.,11.,190.,241.,198.,137.,60.,115.,125.,50.,135.,200.,141.,194.,119.,56.,54.,121.,204.,131.,180.,251.,78.,1.,15.,64.,245.,186.,127.,48.,133.,202.,196.,139.,62.,113.,70.,9.,188.,243.,253.,178.,7.,72.,13.,66.,247.,184.,182.,249.,76.,3.,52.,123.,206.,129.,143.,192.,117.,58.,212.,155.,46.,97.,111.,32.,149.,218.,237.,162.,23.,88.,86.,25.,172.,227.,166.,233.,92.,19.,29.,82.,231.,168.,159.,208.,101.,42.,36.,107.,222.,145.,84.,27.,174.,225.,239.,160.,21.,90.,109.,34.,151.,216.,214.,153.,44.,99.,38.,105.,220.,147.,157.,210.,103.,40.,31.,80.,229.,170.,164.,235.,94.,17.,205.,130.,55.,120.,118.,57.,140.,195.,244.,187.,14.,65.,79.,0.,181.,250.,191.,240.,69.,10.,4.,75.,254.,177.,134.,201.,124.,51.,61.,114.,199.,136.,77.,2.,183.,248.,246.,185.,12.,67.,116.,59.,142.,193.,207.,128.,53.,122.,63.,112.,197.,138.,132.,203.,126.,49.,6.,73.,252.,179.,189.,242.,71.,8.,230.,169.,28.,83.,93.,18.,167.,232.,223.,144.,37.,106.,100.,43.,158.,209.,148.,219.,110.,33.,47.,96.,213.,154.,173.,226.,87.,24.,22.,89.,236.,163.,102.,41.,156.,211.,221.,146.,39.,104.,95.,16.,165.,234.,228.,171.,30.,81.,20.,91.,238.,161.,175.,224.,85.,26.,45.,98.,215.,152.,150.,217.,108.,35.',
        ','
       ),
       CAST((crc32(substring(unhex(_msgid_parse_v0_of_text.id), -14, 1)) & 255) AS int)
      ),
      get(
       split(
        '255,176,5,74,68,11,190,241,198,137,60,115,125,50,135,200,141,194,119,56,54,121,204,131,180,251,78,1,15,64,245,186,127,48,133,202,196,139,62,113,70,9,188,243,253,178,7,72,13,66,247,184,182,249,76,3,52,123,206,129,143,192,117,58,212,155,46,97,111,32,149,218,237,162,23,88,86,25,172,227,166,233,92,19,29,82,231,168,159,208,101,42,36,107,222,145,84,27,174,225,239,160,21,90,109,34,151,216,214,153,44,99,38,105,220,147,157,210,103,40,31,80,229,170,164,235,94,17,205,130,55,120,118,57,140,195,244,187,14,65,79,0,181,250,191,240,69,10,4,75,254,177,134,201,124,51,61,114,199,136,77,2,183,248,246,185,12,67,116,59,142,193,207,128,53,122,63,112,197,138,132,203,126,49,6,73,252,179,189,242,71,8,230,169,28,83,93,18,167,232,223,144,37,106,100,43,158,209,148,219,110,33,47,96,213,154,173,226,87,24,22,89,236,163,102,41,156,211,221,146,39,104,95,16,165,234,228,171,30,81,20,91,238,161,175,224,85,26,45,98,215,152,150,217,108,35',
        ','
       ),
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
      THEN 'a UUID is not a message ID, but a derived ID can have it as its parent'
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
 )
;

-- returns STRUCT<kind: STRING, host: STRING, port: INT, offset: BIGINT, pid: INT, loader_hash: BIGINT, elapsed_ms: BIGINT, counter: INT>
CREATE OR REPLACE TEMPORARY FUNCTION msgid_parse_v0(id STRING)
COMMENT 'Parse a version-0 ID: a broker\'s offset, or a client\'s IP address, pid, time and counter. Example: msgid_parse_v0(\'7F0000010000238F000000000001E240\').host = 127.0.0.1'
RETURN
 _msgid_parse_v0_of_text(
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
 )
;

-- returns STRUCT<kind: STRING, host: STRING, port: INT, offset: BIGINT, pid: INT, loader_hash: BIGINT, elapsed_ms: BIGINT, counter: INT>
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_try_parse_v0_of_text(id STRING)
COMMENT 'Parse a version-0 ID, as `parse_v0` does; NULL for any other value.'
RETURN
 (
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
      split(
       '255.,176.,5.,74.,68.,11.,190.,241.,198.,137.,60.,115.,125.,50.,135.,200.,141.,194.,119.,56.,54.,121.,204.,131.,180.,251.,78.,1.,15.,64.,245.,186.,127.,48.,133.,202.,196.,139.,62.,113.,70.,9.,188.,243.,253.,178.,7.,72.,13.,66.,247.,184.,182.,249.,76.,3.,52.,123.,206.,129.,143.,192.,117.,58.,212.,155.,46.,97.,111.,32.,149.,218.,237.,162.,23.,88.,86.,25.,172.,227.,166.,233.,92.,19.,29.,82.,231.,168.,159.,208.,101.,42.,36.,107.,222.,145.,84.,27.,174.,225.,239.,160.,21.,90.,109.,34.,151.,216.,214.,153.,44.,99.,38.,105.,220.,147.,157.,210.,103.,40.,31.,80.,229.,170.,164.,235.,94.,17.,205.,130.,55.,120.,118.,57.,140.,195.,244.,187.,14.,65.,79.,0.,181.,250.,191.,240.,69.,10.,4.,75.,254.,177.,134.,201.,124.,51.,61.,114.,199.,136.,77.,2.,183.,248.,246.,185.,12.,67.,116.,59.,142.,193.,207.,128.,53.,122.,63.,112.,197.,138.,132.,203.,126.,49.,6.,73.,252.,179.,189.,242.,71.,8.,230.,169.,28.,83.,93.,18.,167.,232.,223.,144.,37.,106.,100.,43.,158.,209.,148.,219.,110.,33.,47.,96.,213.,154.,173.,226.,87.,24.,22.,89.,236.,163.,102.,41.,156.,211.,221.,146.,39.,104.,95.,16.,165.,234.,228.,171.,30.,81.,20.,91.,238.,161.,175.,224.,85.,26.,45.,98.,215.,152.,150.,217.,108.,35.',
       ','
      ),
      CAST((crc32(substring(unhex(_msgid_try_parse_v0_of_text.id), -16, 1)) & 255) AS int)
     ),
     get(
      split(
       '255.,176.,5.,74.,68.,11.,190.,241.,198.,137.,60.,115.,125.,50.,135.,200.,141.,194.,119.,56.,54.,121.,204.,131.,180.,251.,78.,1.,15.,64.,245.,186.,127.,48.,133.,202.,196.,139.,62.,113.,70.,9.,188.,243.,253.,178.,7.,72.,13.,66.,247.,184.,182.,249.,76.,3.,52.,123.,206.,129.,143.,192.,117.,58.,212.,155.,46.,97.,111.,32.,149.,218.,237.,162.,23.,88.,86.,25.,172.,227.,166.,233.,92.,19.,29.,82.,231.,168.,159.,208.,101.,42.,36.,107.,222.,145.,84.,27.,174.,225.,239.,160.,21.,90.,109.,34.,151.,216.,214.,153.,44.,99.,38.,105.,220.,147.,157.,210.,103.,40.,31.,80.,229.,170.,164.,235.,94.,17.,205.,130.,55.,120.,118.,57.,140.,195.,244.,187.,14.,65.,79.,0.,181.,250.,191.,240.,69.,10.,4.,75.,254.,177.,134.,201.,124.,51.,61.,114.,199.,136.,77.,2.,183.,248.,246.,185.,12.,67.,116.,59.,142.,193.,207.,128.,53.,122.,63.,112.,197.,138.,132.,203.,126.,49.,6.,73.,252.,179.,189.,242.,71.,8.,230.,169.,28.,83.,93.,18.,167.,232.,223.,144.,37.,106.,100.,43.,158.,209.,148.,219.,110.,33.,47.,96.,213.,154.,173.,226.,87.,24.,22.,89.,236.,163.,102.,41.,156.,211.,221.,146.,39.,104.,95.,16.,165.,234.,228.,171.,30.,81.,20.,91.,238.,161.,175.,224.,85.,26.,45.,98.,215.,152.,150.,217.,108.,35.',
       ','
      ),
      CAST((crc32(substring(unhex(_msgid_try_parse_v0_of_text.id), -15, 1)) & 255) AS int)
     ),
     get(
      split(
       '255.,176.,5.,74.,68.,11.,190.,241.,198.,137.,60.,115.,125.,50.,135.,200.,141.,194.,119.,56.,54.,121.,204.,131.,180.,251.,78.,1.,15.,64.,245.,186.,127.,48.,133.,202.,196.,139.,62.,113.,70.,9.,188.,243.,253.,178.,7.,72.,13.,66.,247.,184.,182.,249.,76.,3.,52.,123.,206.,129.,143.,192.,117.,58.,212.,155.,46.,97.,111.,32.,149.,218.,237.,162.,23.,88.,86.,25.,172.,227.,166.,233.,92.,19.,29.,82.,231.,168.,159.,208.,101.,42.,36.,107.,222.,145.,84.,27.,174.,225.,239.,160.,21.,90.,109.,34.,151.,216.,214.,153.,44.,99.,38.,105.,220.,147.,157.,210.,103.,40.,31.,80.,229.,170.,164.,235.,94.,17.,205.,130.,55.,120.,118.,57.,140.,195.,244.,187.,14.,65.,79.,0.,181.,250.,191.,240.,69.,10.,4.,75.,254.,177.,134.,201.,124.,51.,61.,114.,199.,136.,77.,2.,183.,248.,246.,185.,12.,67.,116.,59.,142.,193.,207.,128.,53.,122.,63.,112.,197.,138.,132.,203.,126.,49.,6.,73.,252.,179.,189.,242.,71.,8.,230.,169.,28.,83.,93.,18.,167.,232.,223.,144.,37.,106.,100.,43.,158.,209.,148.,219.,110.,33.,47.,96.,213.,154.,173.,226.,87.,24.,22.,89.,236.,163.,102.,41.,156.,211.,221.,146.,39.,104.,95.,16.,165.,234.,228.,171.,30.,81.,20.,91.,238.,161.,175.,224.,85.,26.,45.,98.,215.,152.,150.,217.,108.,35.',
       ','
      ),
      CAST((crc32(substring(unhex(_msgid_try_parse_v0_of_text.id), -14, 1)) & 255) AS int)
     ),
     get(
      split(
       '255,176,5,74,68,11,190,241,198,137,60,115,125,50,135,200,141,194,119,56,54,121,204,131,180,251,78,1,15,64,245,186,127,48,133,202,196,139,62,113,70,9,188,243,253,178,7,72,13,66,247,184,182,249,76,3,52,123,206,129,143,192,117,58,212,155,46,97,111,32,149,218,237,162,23,88,86,25,172,227,166,233,92,19,29,82,231,168,159,208,101,42,36,107,222,145,84,27,174,225,239,160,21,90,109,34,151,216,214,153,44,99,38,105,220,147,157,210,103,40,31,80,229,170,164,235,94,17,205,130,55,120,118,57,140,195,244,187,14,65,79,0,181,250,191,240,69,10,4,75,254,177,134,201,124,51,61,114,199,136,77,2,183,248,246,185,12,67,116,59,142,193,207,128,53,122,63,112,197,138,132,203,126,49,6,73,252,179,189,242,71,8,230,169,28,83,93,18,167,232,223,144,37,106,100,43,158,209,148,219,110,33,47,96,213,154,173,226,87,24,22,89,236,163,102,41,156,211,221,146,39,104,95,16,165,234,228,171,30,81,20,91,238,161,175,224,85,26,45,98,215,152,150,217,108,35',
       ','
      ),
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
         AND (
          NOT (substring(CAST(_msgid_try_parse_v0_of_text.id AS binary), -20, 4) = CAST('0000' AS binary))
         )
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
 )
;

-- returns STRUCT<kind: STRING, host: STRING, port: INT, offset: BIGINT, pid: INT, loader_hash: BIGINT, elapsed_ms: BIGINT, counter: INT>
CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_parse_v0(id STRING)
COMMENT 'Parse a version-0 ID, as `parse_v0` does; NULL for any other value. Example: msgid_try_parse_v0(\'0156F7E71C361B21BC024CCDBE00000007\') = NULL'
RETURN
 _msgid_try_parse_v0_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_translate_v0_of_text(id STRING)
COMMENT 'Return the canonical text of version-0 IDs, with ``00`` in front, as `msgid.translate_v0` does.'
RETURN
 (
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
     THEN 'a UUID is not a message ID, but a derived ID can have it as its parent'
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_translate_v0(id STRING)
COMMENT 'Return the canonical text of version-0 IDs, with ``00`` in front, as `msgid.translate_v0` does. Example: msgid_translate_v0(\'7F0000010000238F000000000001E240\') = 007F0000010000238F000000000001E240'
RETURN
 _msgid_translate_v0_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_try_translate_v0_of_text(id STRING)
COMMENT 'Return the canonical text of version-0 IDs, as `translate_v0` does; NULL for any other value.'
RETURN
 (
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_try_translate_v0(id STRING)
COMMENT 'Return the canonical text of version-0 IDs, as `translate_v0` does; NULL for any other value. Example: msgid_try_translate_v0(\'0156F7E71C361B21BC024CCDBE00000007\') = NULL'
RETURN
 _msgid_try_translate_v0_of_text(
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
 )
;

-- returns TIMESTAMP_LTZ
CREATE OR REPLACE TEMPORARY FUNCTION _msgid_v0_time_of_text(id STRING, near DECIMAL(38, 18), timezone STRING)
COMMENT 'Return the time at which a version-0 client ID was made, as `msgid.ClientUniqueId.time_near` does.'
RETURN
 coalesce(
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
  ),
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
   AS timestamp_ltz
  )
 )
;

-- returns TIMESTAMP_LTZ
CREATE OR REPLACE TEMPORARY FUNCTION msgid_v0_time(id STRING, near DECIMAL(38, 18), timezone STRING)
COMMENT 'Return the time at which a version-0 client ID was made, as `msgid.ClientUniqueId.time_near` does. Example: msgid_v0_time(\'C0A8F001103E214D29547ACFD6E30000\', 1648047038, \'UTC\') = 2022-02-24 20:20:41.315'
RETURN
 _msgid_v0_time_of_text(
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
 )
;

-- returns STRING
CREATE OR REPLACE TEMPORARY FUNCTION msgid_from_iggy_id(id BINARY)
COMMENT 'Return the ID of an Iggy message as text, as `msgid.iggy.id_text` does. Example: msgid_from_iggy_id(X\'AE97611CEC9EA9B08F49B3DDCA58B174\') = ae97611c-ec9e-a9b0-8f49-b3ddca58b174'
RETURN
 (
  CASE
  WHEN (length(hex(CAST(msgid_from_iggy_id.id AS binary))) = 32)
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
  WHEN (
   (octet_length(hex(CAST(msgid_from_iggy_id.id AS binary))) = 34)
   AND startswith(hex(CAST(msgid_from_iggy_id.id AS binary)), '01')
  )
  THEN hex(CAST(msgid_from_iggy_id.id AS binary))
  END
 )
;

-- returns BOOLEAN
CREATE OR REPLACE TEMPORARY FUNCTION msgid_is_expired(timestamp DECIMAL(38, 18), expiry BIGINT, now DECIMAL(38, 18))
COMMENT 'Return whether messages have expired, as `msgid.retention.is_expired` does. Example: msgid_is_expired(1648047038, 3600, 1648060000) = true'
RETURN
 coalesce(
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
      (
       CASE WHEN (length(CAST(floor(msgid_is_expired.now) AS string)) = 13) THEN ': milliseconds?' ELSE '' END
      )
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
 )
;

-- returns STRING, not deterministic
CREATE OR REPLACE TEMPORARY FUNCTION msgid_assign()
COMMENT 'Return a new ID for each row: the run\'s own node, the partition as pid, the row\'s number as sequence.'
RETURN
 concat(
  (
   SELECT upper(
    concat('01', left(digest, 1), '7', substring(digest, 2, 10))
   )
   FROM (SELECT sha2(concat(uuid(), CAST(unix_micros(now()) AS STRING)), 256) AS digest FROM VALUES (0))
  ),
  coalesce(
   concat(
    get(
     split(
      '0000,0001,0002,0003,0004,0005,0006,0007,0008,0009,000A,000B,000C,000D,000E,000F,0010,0011,0012,0013,0014,0015,0016,0017,0018,0019,001A,001B,001C,001D,001E,001F,0020,0021,0022,0023,0024,0025,0026,0027,0028,0029,002A,002B,002C,002D,002E,002F,0030,0031,0032,0033,0034,0035,0036,0037,0038,0039,003A,003B,003C,003D,003E,003F,0040,0041,0042,0043,0044,0045,0046,0047,0048,0049,004A,004B,004C,004D,004E,004F,0050,0051,0052,0053,0054,0055,0056,0057,0058,0059,005A,005B,005C,005D,005E,005F,0060,0061,0062,0063,0064,0065,0066,0067,0068,0069,006A,006B,006C,006D,006E,006F,0070,0071,0072,0073,0074,0075,0076,0077,0078,0079,007A,007B,007C,007D,007E,007F,0080,0081,0082,0083,0084,0085,0086,0087,0088,0089,008A,008B,008C,008D,008E,008F,0090,0091,0092,0093,0094,0095,0096,0097,0098,0099,009A,009B,009C,009D,009E,009F,00A0,00A1,00A2,00A3,00A4,00A5,00A6,00A7,00A8,00A9,00AA,00AB,00AC,00AD,00AE,00AF,00B0,00B1,00B2,00B3,00B4,00B5,00B6,00B7,00B8,00B9,00BA,00BB,00BC,00BD,00BE,00BF,00C0,00C1,00C2,00C3,00C4,00C5,00C6,00C7,00C8,00C9,00CA,00CB,00CC,00CD,00CE,00CF,00D0,00D1,00D2,00D3,00D4,00D5,00D6,00D7,00D8,00D9,00DA,00DB,00DC,00DD,00DE,00DF,00E0,00E1,00E2,00E3,00E4,00E5,00E6,00E7,00E8,00E9,00EA,00EB,00EC,00ED,00EE,00EF,00F0,00F1,00F2,00F3,00F4,00F5,00F6,00F7,00F8,00F9,00FA,00FB,00FC,00FD,00FE,00FF',
      ','
     ),
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
      split(
       '00,01,02,03,04,05,06,07,08,09,0A,0B,0C,0D,0E,0F,10,11,12,13,14,15,16,17,18,19,1A,1B,1C,1D,1E,1F,20,21,22,23,24,25,26,27,28,29,2A,2B,2C,2D,2E,2F,30,31,32,33,34,35,36,37,38,39,3A,3B,3C,3D,3E,3F,40,41,42,43,44,45,46,47,48,49,4A,4B,4C,4D,4E,4F,50,51,52,53,54,55,56,57,58,59,5A,5B,5C,5D,5E,5F,60,61,62,63,64,65,66,67,68,69,6A,6B,6C,6D,6E,6F,70,71,72,73,74,75,76,77,78,79,7A,7B,7C,7D,7E,7F,80,81,82,83,84,85,86,87,88,89,8A,8B,8C,8D,8E,8F,90,91,92,93,94,95,96,97,98,99,9A,9B,9C,9D,9E,9F,A0,A1,A2,A3,A4,A5,A6,A7,A8,A9,AA,AB,AC,AD,AE,AF,B0,B1,B2,B3,B4,B5,B6,B7,B8,B9,BA,BB,BC,BD,BE,BF,C0,C1,C2,C3,C4,C5,C6,C7,C8,C9,CA,CB,CC,CD,CE,CF,D0,D1,D2,D3,D4,D5,D6,D7,D8,D9,DA,DB,DC,DD,DE,DF,E0,E1,E2,E3,E4,E5,E6,E7,E8,E9,EA,EB,EC,ED,EE,EF,F0,F1,F2,F3,F4,F5,F6,F7,F8,F9,FA,FB,FC,FD,FE,FF',
       ','
      ),
      CAST(shiftright(spark_partition_id(), 8) AS int)
     ),
     get(
      split(
       '00,01,02,03,04,05,06,07,08,09,0A,0B,0C,0D,0E,0F,10,11,12,13,14,15,16,17,18,19,1A,1B,1C,1D,1E,1F,20,21,22,23,24,25,26,27,28,29,2A,2B,2C,2D,2E,2F,30,31,32,33,34,35,36,37,38,39,3A,3B,3C,3D,3E,3F,40,41,42,43,44,45,46,47,48,49,4A,4B,4C,4D,4E,4F,50,51,52,53,54,55,56,57,58,59,5A,5B,5C,5D,5E,5F,60,61,62,63,64,65,66,67,68,69,6A,6B,6C,6D,6E,6F,70,71,72,73,74,75,76,77,78,79,7A,7B,7C,7D,7E,7F,80,81,82,83,84,85,86,87,88,89,8A,8B,8C,8D,8E,8F,90,91,92,93,94,95,96,97,98,99,9A,9B,9C,9D,9E,9F,A0,A1,A2,A3,A4,A5,A6,A7,A8,A9,AA,AB,AC,AD,AE,AF,B0,B1,B2,B3,B4,B5,B6,B7,B8,B9,BA,BB,BC,BD,BE,BF,C0,C1,C2,C3,C4,C5,C6,C7,C8,C9,CA,CB,CC,CD,CE,CF,D0,D1,D2,D3,D4,D5,D6,D7,D8,D9,DA,DB,DC,DD,DE,DF,E0,E1,E2,E3,E4,E5,E6,E7,E8,E9,EA,EB,EC,ED,EE,EF,F0,F1,F2,F3,F4,F5,F6,F7,F8,F9,FA,FB,FC,FD,FE,FF',
       ','
      ),
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
 )
;

-- returns STRING, not deterministic
CREATE OR REPLACE TEMPORARY FUNCTION msgid_generate()
COMMENT 'Return a new ID for each row, from a generator of the executor: its node, its process, its clock.'
RETURN
 _msgid_generate(0)
;
