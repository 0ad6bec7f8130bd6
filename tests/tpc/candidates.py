"""What `python -m tests.tpc.search` may put in the place of a constant that finds nothing.

Per query of TPC-DS, or of TPC-H in `TPCH`: a piece of its text, the same with `{}` for what varies,
and the candidates, as a list or as SQL over the generated data. A list without `{}` in its template
is a plain replacement. Where TPC's own condition cannot hold at this size at all (there is one
store, one warehouse, one web site), a column of the same type or a threshold takes its place and
the shape of the query stays.
"""

from __future__ import annotations

Choice = tuple[str, str, "str | list[object]"]

_YEARS: list[object] = [1998, 1999, 2000, 2001, 2002]
_MONTHS: list[object] = [11, 12, 8, 9, 10, 7, 1, 2, 3, 4, 5, 6]
_STATES = "SELECT ca_state FROM customer_address GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 25"
_ITEM = "SELECT i_manufact_id FROM item GROUP BY 1 ORDER BY count(*) DESC, 1"
_DATES = (
    "SELECT DISTINCT d_date FROM date_dim JOIN web_sales ON ws_sold_date_sk = d_date_sk ORDER BY 1"
)
_COUNTIES = (
    "SELECT a.ca_county FROM customer_address a WHERE a.ca_county IS NOT NULL"
    " GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 5"
)
_TWO_STATES = (
    f"SELECT a.ca_state || ''', ''' || b.ca_state FROM ({_STATES}) a, ({_STATES}) b"
    " WHERE a.ca_state < b.ca_state"
)


def _one(old: str, new: str) -> Choice:
    return (old, new, [""])


TPCH: dict[int, list[Choice]] = {
    17: [
        ("p_brand = 'Brand#23'", "p_brand = '{}'", "SELECT DISTINCT p_brand FROM part ORDER BY 1"),
        (
            "p_container = 'MED BOX'",
            "p_container = '{}'",
            "SELECT DISTINCT p_container FROM part ORDER BY 1",
        ),
    ],
}

TPCDS: dict[int, list[Choice]] = {
    3: [("i_manufact_id = 128", "i_manufact_id = {}", _ITEM)],
    4: [
        ("firstyear.dyear = 2001", "firstyear.dyear <= {}", _YEARS),
        ("secyear.dyear = 2001+1", "secyear.dyear >= {}", _YEARS),
    ],
    8: [
        (
            "'24128'",
            "{}",
            "SELECT string_agg('''' || zip || '''', ', ' ORDER BY zip) FROM (SELECT"
            " substr(ca_zip, 1, 5) zip FROM customer_address JOIN customer ON"
            " ca_address_sk = c_current_addr_sk WHERE c_preferred_cust_flag = 'Y'"
            " AND ca_zip[:2] IN (SELECT s_zip[:2] FROM store)"
            " GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 4)",
        ),
        ("count(*) > 10", "count(*) > {}", [3, 2, 1, 0]),
    ],
    10: [
        ("'Rush County'", "'{}'", _COUNTIES),
        ("'Toole County'", "'{}'", _COUNTIES),
        ("d_year = 2002", "d_year = {}", _YEARS),
        ("BETWEEN 1 AND 1+3", "BETWEEN {0} AND {0}+3", [9, 8, 7]),
    ],
    11: [("2001", "{}", _YEARS)],
    13: [
        ("cd_education_status = 'Advanced Degree'", "cd_education_status = '{}'", ["4 yr Degree"]),
        ("'TX', 'OH', 'TX'", "'{}'", _TWO_STATES),
        ("BETWEEN 150 AND 300", "BETWEEN {} AND 300", [-900]),
        ("BETWEEN 50 AND 250", "BETWEEN {} AND 250", [-2000]),
        ("hd_dep_count = 1", "hd_dep_count = {}", list(range(8))),
        ("d_year = 2001", "d_year = {}", _YEARS),
    ],
    16: [
        ("d_date BETWEEN '2002-02-01'", "d_date BETWEEN '{}-02-01'", _YEARS),
        ("ca_state = 'GA'", "ca_state = '{}'", _STATES),
        _one("cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk", "cs1.cs_item_sk <> cs2.cs_item_sk"),
    ],
    19: [
        ("i_manager_id=8", "i_manager_id={}", "SELECT DISTINCT i_manager_id FROM item ORDER BY 1"),
        ("d_year=1998", "d_year={}", _YEARS),
    ],
    23: [
        ("count(*) >4", "count(*) >{}", [3, 2, 1]),
        ("(50/100.0)", "({}/100.0)", [40, 30, 20]),
        ("d_year = 2000", "d_year = {}", [2000, 2001, 2002]),
        ("d_moy = 2", "d_moy = {}", _MONTHS),
    ],
    24: [
        ("s_market_id=8", "s_market_id={}", "SELECT s_market_id FROM store"),
        _one("s_zip = ca_zip", "s_state = ca_state"),
        ("i_color = 'peach'", "i_color = '{}'", "SELECT DISTINCT i_color FROM item ORDER BY 1"),
    ],
    25: [
        ("d1.d_moy = 4", "d1.d_moy = {}", _MONTHS),
        ("d2.d_moy BETWEEN 4 AND 10", "d2.d_moy BETWEEN {} AND 12", [1, 2]),
        ("d3.d_moy BETWEEN 4 AND 10", "d3.d_moy BETWEEN {} AND 12", [1, 2]),
        ("d_year = 2001", "d_year = {}", _YEARS),
    ],
    30: [("d_year = 2002", "d_year = {}", _YEARS), ("'GA'", "'{}'", _STATES)],
    31: [
        ("d_year = 2000", "d_year = {}", _YEARS),
        ("ca_county", "{}", ["ca_gmt_offset"]),
    ],
    32: [("i_manufact_id = 977", "i_manufact_id = {}", _ITEM)],
    37: [
        ("BETWEEN 68 AND 68 + 30", "BETWEEN {0} AND {0} + 30", [1, 5, 30, 60]),
        ("677, 940", "{}, 940", _ITEM),
        ("694, 808", "{}, 808", _ITEM),
    ],
    38: [
        ("BETWEEN 1200 AND 1200 + 11", "BETWEEN {0} AND {0} + 11", list(range(1176, 1226))),
        _one("c_first_name, d_date", "c_first_name, d_year"),
    ],
    39: [
        ("d_year =2001", "d_year ={}", _YEARS),
        ("END > 1", "END > {}", [0.9, 0.8, 0.7, 0.5]),
        ("inv1.d_moy=1", "inv1.d_moy={}", [1, 2, 3, 4]),
    ],
    41: [
        ("BETWEEN 738 AND 738+40", "BETWEEN {0} AND {0}+40", list(range(1, 1000, 10))),
        (
            "(i_color = 'powder' OR i_color = 'khaki')",
            "(i_color = '{}' OR i_color = 'khaki')",
            "SELECT DISTINCT i_color FROM item WHERE i_category = 'Women' ORDER BY 1",
        ),
        (
            "(i_units = 'Ounce' OR i_units = 'Oz')",
            "(i_units = '{}' OR i_units = 'Oz')",
            "SELECT DISTINCT i_units FROM item WHERE i_category = 'Women' ORDER BY 1",
        ),
    ],
    44: [
        ("ss_store_sk = 4", "ss_store_sk = {}", [1]),
        ("0.9*", "{}*", [0.9, 0.5, 2, 4]),
    ],
    49: [
        ("d_year = 2001", "d_year = {}", _YEARS),
        ("d_moy = 12", "d_moy = {}", _MONTHS),
        ("> 10000", "> {}", [1000, 500, 300, 100]),
    ],
    54: [
        ("i_class = 'maternity'", "i_class = '{}'", "SELECT DISTINCT i_class FROM item ORDER BY 1"),
        ("d_year = 1998", "d_year = {}", _YEARS),
        _one("ca_county = s_county", "ca_country = s_country"),
        _one("ca_state = s_state", "ca_gmt_offset = s_gmt_offset"),
        ("d_moy = 12", "d_moy = {}", _MONTHS),
        ("'Women'", "'{}'", ["Women", "Men", "Shoes"]),
    ],
    58: [
        ("'2000-01-03'", "'{}'", _DATES),
        ("0.9 *", "{} *", [0.9, 0.5, 0.2]),
        ("1.1 *", "{} *", [1.1, 2, 5]),
    ],
    64: [
        (
            "'purple', 'burlywood'",
            "'{}', 'burlywood'",
            "SELECT i_color FROM item GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 20",
        ),
        ("BETWEEN 64 AND 64 + 10", "BETWEEN {} AND 64 + 10", [0]),
        ("BETWEEN 64 + 1 AND 64 + 15", "BETWEEN {} + 1 AND 64 + 15", [0]),
        ("syear = 1999", "syear = {}", [1998, 1999, 2000, 2001]),
        ("cs2.syear = 1999 + 1", "cs2.syear = {} + 1", [1998, 1999, 2000, 2001]),
    ],
    65: [("0.1 *", "{} *", [0.5, 0.6, 0.7, 0.8, 0.9])],
    73: [
        ("'Orange County'", "'{}'", "SELECT s_county FROM store"),
        ("(1999, 1999+1, 1999+2)", "({0}, {0}+1, {0}+2)", [1998, 1999, 2000]),
        ("d_dom BETWEEN 1 AND 2", "d_dom BETWEEN 1 AND {}", [2, 4, 8]),
        ("cnt BETWEEN 1 AND 5", "cnt BETWEEN 1 AND {}", [5, 15]),
    ],
    74: [("2001", "{}", _YEARS)],
    82: [
        ("BETWEEN 62 AND 62+30", "BETWEEN {0} AND {0}+30", [1, 5, 30, 60]),
        ("129, 270", "{}, 270", _ITEM),
        ("821, 423", "{}, 423", _ITEM),
    ],
    83: [
        ("'2000-06-30'", "'{}'", _DATES),
        ("'2000-09-27'", "'{}'", _DATES),
        ("'2000-11-17'", "'{}'", _DATES),
    ],
    85: [
        ("d_year = 2000", "d_year = {}", _YEARS),
        ("BETWEEN 100.00 AND 150.00", "BETWEEN {} AND 150.00", [10]),
        ("BETWEEN 50.00 AND 100.00", "BETWEEN {} AND 100.00", [5]),
        ("'IN', 'OH', 'NJ'", "'{}', 'NJ'", _TWO_STATES),
        ("BETWEEN 100 AND 200", "BETWEEN {} AND 2000", [-3000]),
        ("= 'College'", "= '{}'", "SELECT DISTINCT cd_education_status FROM customer_demographics"),
        ("= 'S'", "= '{}'", ["S", "D", "U"]),
        _one(
            "'M' AND cd1.cd_marital_status = cd2.cd_marital_status",
            "'M' AND cd1.cd_gender <> cd2.cd_gender",
        ),
    ],
    88: [("'ese'", "'{}'", "SELECT s_store_name FROM store")],
    90: [
        ("BETWEEN 5000 AND 5200", "BETWEEN {} AND 5200", [2500]),
        ("hd_dep_count = 6", "hd_dep_count = {}", list(range(10))),
    ],
    91: [
        ("d_year = 1998", "d_year = {}", _YEARS),
        ("d_moy = 11", "d_moy = {}", _MONTHS),
        ("ca_gmt_offset = -7", "ca_gmt_offset = {}", [-6, -5]),
        ("'Unknown%'", "'{}%'", ["Unknown", ">10000", "1001", "0"]),
        ("cd_marital_status = 'M'", "cd_marital_status = '{}'", ["M", "S", "D", "U"]),
        (
            "cd_education_status = 'Unknown'",
            "cd_education_status = '{}'",
            "SELECT DISTINCT cd_education_status FROM customer_demographics ORDER BY 1",
        ),
    ],
    92: [("i_manufact_id = 350", "i_manufact_id = {}", _ITEM)],
    93: [("'reason 28'", "'{}'", "SELECT r_reason_desc FROM reason")],
    96: [
        ("'ese'", "'{}'", "SELECT s_store_name FROM store"),
        ("hd_dep_count = 7", "hd_dep_count = {}", list(range(10))),
    ],
}
for _number in (94, 95):
    TPCDS[_number] = [
        ("'pri'", "'{}'", "SELECT web_company_name FROM web_site"),
        ("'IL'", "'{}'", _STATES),
        _one("ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk", "ws1.ws_item_sk <> ws2.ws_item_sk"),
    ]
