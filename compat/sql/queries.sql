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
-- answer: true | true
SELECT abs(stddev(weight) - sqrt((sum(weight * weight) - sum(weight) * avg(weight)) / (count(weight) - 1))) < 1e-6, var_pop(amount) > 0 FROM (SELECT weight, amount FROM sales) WHERE false OR true;

-- pushed: group_by=[station], aggregates=[count(*), sum(value), min(level), max(level)]
SELECT station, count(*), sum(value), min(level), max(level) FROM readings GROUP BY station ORDER BY station;

-- pushed: rows=[\u{7f}���\u{0}\u{0}\u{0}\u{0}
SELECT count(*) FROM readings WHERE station = -1 AND minute >= 28000050;

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

-- answer: true | true
SELECT abs(approx_distinct(id) - 600) < 30, abs(approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY weight) - median(weight)) < 2 FROM sales;

-- answer: sales
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name LIKE 's%';
