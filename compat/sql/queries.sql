-- pushed: GrampusAggregate: table=sales, group_by=[], aggregates=[count(*)], rows=[..), regions=4
SELECT count(*) FROM sales;

-- pushed: GrampusAggregate: table=sales, group_by=[], aggregates=[count(amount), sum(amount), min(amount), max(amount), avg(amount)]
SELECT count(amount), sum(amount), min(amount), max(amount), avg(amount) FROM sales;

-- pushed: GrampusAggregate: table=sales, group_by=[region], aggregates=[sum(amount)], predicate=product = 'fig', rows=[..), regions=4
SELECT region, sum(amount) FROM sales WHERE product = 'fig' GROUP BY region ORDER BY region;

-- pushed: rows=[north..north}), regions=2
SELECT product, count(*), sum(price) FROM sales WHERE region = 'north' GROUP BY product;

-- pushed: predicate=region = 'north' AND day = '2024-01-20', rows=[north|2024-01-20..north|2024-01-20}), regions=1
SELECT count(*), sum(weight) FROM sales WHERE region = 'north' AND day = '2024-01-20';

-- pushed: GrampusScan: table=sales, columns=[product, amount], predicate=id >= 'west' AND id < 'west|2024-01-05', rows=[west..west|2024-01-05), regions=1
SELECT product, amount FROM sales WHERE id >= 'west' AND id < 'west|2024-01-05';

-- pushed: group_by=[product, gift]
-- pushed: aggregates=[count(*), avg(weight)]
SELECT product, count(*), avg(weight) FROM sales GROUP BY product, gift HAVING count(*) > 10;

-- pushed: predicate=price >= 12.50 AND price < 80.00
SELECT count(*), min(price), max(price), sum(price) FROM sales WHERE price >= 12.5 AND price < 80;

-- pushed: predicate=at >= '2024-01-10T00:00:00' AND at < '2024-01-12T00:00:00'
SELECT count(*) FROM sales WHERE at >= '2024-01-10 00:00:00' AND at < '2024-01-12 00:00:00';

-- pushed: aggregates=[stddev_samp(weight), var_pop(amount)]
-- answer: t | t
SELECT stddev(weight) > 0, var_pop(amount) > 0 FROM (SELECT weight, amount FROM sales) AS s WHERE false OR true;

-- pushed: aggregates=[var_samp(weight)]
-- answer: t
SELECT abs(found.v - (own.squares - own.total * own.mean) / (own.number - 1)) < 1e-6 FROM (SELECT var_samp(weight) AS v FROM sales) AS found, (SELECT sum(weight * weight) AS squares, sum(weight) AS total, avg(weight) AS mean, count(weight) AS number FROM sales) AS own;

-- pushed: group_by=[station], aggregates=[count(*), sum(value), min(level), max(level)]
SELECT station, count(*), sum(value), min(level), max(level) FROM readings GROUP BY station ORDER BY station;

-- pushed: rows=[\x7F\xFF\xFF\xFF\x00\x00\x00\x00\x01\xAB?2..\x7F\xFF\xFF\xFF\x80), regions=1
SELECT count(*) FROM readings WHERE station = -1 AND minute >= 28000050;

-- pushed: rows=[\x7F\xFF\xFF\xFE\x00\x00\x00\x00\x01\xAB?\x00..\x7F\xFF\xFF\xFE\x00\x00\x00\x00\x01\xAB?d) [\x80\x00\x00\x02\x00\x00\x00\x00\x01\xAB?\x00..\x80\x00\x00\x02\x00\x00\x00\x00\x01\xAB?d), regions=1
SELECT station, sum(value) FROM readings WHERE station IN (2, -2) AND minute BETWEEN 28000000 AND 28000099 GROUP BY station;

-- pushed: rows=[north|2024-01-02..north|2024-01-02}) [south|2024-01-02..south|2024-01-02}), regions=2
SELECT count(*), sum(amount) FROM sales WHERE region IN ('south', 'north') AND day = '2024-01-02';

-- pushed: rows=[east|2024-01-03..east|2024-01-03}) [west|2024-01-27..west}), regions=2
SELECT count(*), sum(amount) FROM sales WHERE (region = 'east' AND day = '2024-01-03') OR (region = 'west' AND day > '2024-01-27');

-- pushed: rows=[)\x83..)\x84) [\xD6|..\xD6}), regions=1
SELECT count(*), min(name), max(price) FROM parts WHERE kind = 3;

-- pushed: rows=[)~..)\x82) [\xD6~..\xD6\x82), regions=1
SELECT kind, count(*), sum(price) FROM parts WHERE kind BETWEEN -2 AND 1 GROUP BY kind;

-- pushed: rows=[)\x824p1\x00..)\x824p3\x00) [)\x82\xCB\x8F\xCC\xFF\x00..)\x82\xCB\x8F\xCE\xFF\x00) [\xD6}4p1\x00..\xD6}4p3\x00) [\xD6}\xCB\x8F\xCC\xFF\x00..\xD6}\xCB\x8F\xCE\xFF\x00), regions=1
SELECT kind, name, price FROM parts WHERE kind = 2 AND name >= 'p1' AND name < 'p3' ORDER BY name;

SELECT s.region, count(*), max(p.price) FROM sales s JOIN parts p ON s.number = p.code GROUP BY s.region;

-- pushed: SortPreservingMergeExec: [id@0 ASC NULLS LAST], fetch=4
SELECT id, amount FROM sales ORDER BY id LIMIT 4;

SELECT id, amount FROM sales ORDER BY id DESC LIMIT 4;

-- pushed: aggregates=[min(id), max(id)]
SELECT min(id), max(id) FROM sales;

-- pushed: predicate=code LIKE 'a%'
SELECT code, count(*), sum(level) FROM readings WHERE code LIKE 'a%' GROUP BY code;

-- pushed: limit=5
-- answer: 5
SELECT count(*) FROM (SELECT id FROM sales LIMIT 5);

SELECT sum(price), avg(weight), count(price) FROM sales WHERE gift;

SELECT count(*) FROM sales WHERE NOT gift;

SELECT count(*) FROM sales WHERE gift IS NULL OR amount IS NULL;

SELECT count(*) FROM sales WHERE product IN ('fig', 'plum') AND amount NOT IN (1, 2, 3);

SELECT count(*) FROM sales WHERE NOT (amount > 10 AND product = 'pear');

SELECT count(*) FROM sales WHERE product LIKE 'p%' AND product NOT LIKE '%m';

SELECT count(*) FROM sales WHERE product = 'o''range';

SELECT count(*) FROM sales WHERE amount BETWEEN -5 AND 5;

SELECT count(*) FROM sales WHERE amount > number;

SELECT DISTINCT product FROM sales ORDER BY product NULLS LAST;

SELECT count(DISTINCT product), count(DISTINCT day) FROM sales;

SELECT product, region, count(*), sum(amount), min(weight), max(weight) FROM sales GROUP BY product, region;

SELECT day, sum(amount) AS total FROM sales GROUP BY day ORDER BY total DESC, day LIMIT 10;

SELECT region, max(at) FROM sales GROUP BY region;

SELECT sum(amount * 2 + 1) FROM sales WHERE amount > 0;

SELECT upper(product), count(*) FROM sales WHERE product IS NOT NULL GROUP BY upper(product);

SELECT length(product), sum(amount) FROM sales GROUP BY length(product);

SELECT CASE WHEN amount > 50 THEN 'many' WHEN amount > 0 THEN 'some' ELSE 'none' END AS size, count(*) FROM sales GROUP BY size;

SELECT count(*) FILTER (WHERE amount > 50), sum(amount) FILTER (WHERE product = 'fig') FROM sales;

SELECT id, amount FROM sales ORDER BY amount DESC NULLS LAST, id LIMIT 7;

SELECT number, price FROM sales WHERE number < 20 ORDER BY number;

SELECT id FROM sales WHERE amount = (SELECT max(amount) FROM sales) ORDER BY id;

SELECT s.product, count(*) FROM sales s JOIN readings r ON s.amount = r.level GROUP BY s.product;

SELECT product, sum(amount) FROM sales WHERE region = 'nowhere' GROUP BY product;

SELECT sum(amount), count(*), max(product) FROM sales WHERE region = 'nowhere';

SELECT region, total, rank() OVER (ORDER BY total DESC) FROM (SELECT region, sum(amount) AS total FROM sales GROUP BY region) AS totals;

WITH totals AS (SELECT region, product, sum(price) AS total FROM sales GROUP BY region, product) SELECT region, max(total) FROM totals GROUP BY region;

SELECT region, amount FROM sales WHERE amount > 95 UNION ALL SELECT code, level FROM readings WHERE level = 5;

SELECT minute, value FROM readings WHERE minute < 28000010 ORDER BY minute;

SELECT station, avg(level) FROM readings WHERE value > 0 GROUP BY station;

-- answer: t | t
SELECT abs(approx_distinct(id) - 600) < 30, abs(approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY weight) - median(weight)) < 2 FROM sales;

-- answer: sales
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name LIKE 's%';
