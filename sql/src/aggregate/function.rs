//! Functions of SQL that the endpoint has, and how its states become their values.

use std::fmt::Write;

use columnar::{State, Value};
use datafusion::arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use proto::grampus::aggregate::Function as Asked;

use crate::declaration::{Declaration, DeclaredColumn};
use crate::value;

/// An aggregate of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Pushed {
    /// What is found.
    pub function: Function,
    /// Of which declared column; none for rows.
    pub column: Option<usize>,
}

/// A function of SQL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// `count`.
    Count,
    /// `sum`.
    Sum,
    /// `min`.
    Min,
    /// `max`.
    Max,
    /// `avg`.
    Average,
    /// `var_samp`, `var_pop`, `stddev_samp`, `stddev_pop`.
    Variance {
        /// Of what there is, rather than what a sample lets expect.
        of_population: bool,
        /// Its root.
        root: bool,
    },
    /// `approx_distinct`.
    Distinct,
    /// `approx_percentile_cont`, `approx_median`: of this share.
    Quantile(f64),
}

impl Function {
    /// The function of DataFusion's name for it; a quantile gets its share elsewhere.
    pub fn of_name(name: &str) -> Option<Function> {
        let variance = |of_population, root| Function::Variance { of_population, root };
        Some(match name {
            "count" => Function::Count,
            "sum" => Function::Sum,
            "min" => Function::Min,
            "max" => Function::Max,
            "avg" => Function::Average,
            "var" => variance(false, false),
            "var_pop" => variance(true, false),
            "stddev" => variance(false, true),
            "stddev_pop" => variance(true, true),
            "approx_distinct" => Function::Distinct,
            "approx_percentile_cont" | "approx_median" => Function::Quantile(0.5),
            _ => return None,
        })
    }

    /// What the endpoint is asked for.
    pub fn asked(self) -> Asked {
        match self {
            Function::Count => Asked::Count,
            Function::Sum => Asked::Sum,
            Function::Min => Asked::Min,
            Function::Max => Asked::Max,
            Function::Average => Asked::Average,
            Function::Variance { .. } => Asked::Variance,
            Function::Distinct => Asked::Distinct,
            Function::Quantile(_) => Asked::Quantiles,
        }
    }

    /// The value of a state, of a type that can be cast to `output` without loss.
    ///
    /// # Errors
    /// A sentence: it is none of the type, or the state is of another function.
    pub fn finish(
        self,
        state: &State,
        column: Option<&DeclaredColumn>,
        output: &DataType,
    ) -> Result<ScalarValue, String> {
        let null = || ScalarValue::try_from(output).map_err(|error| error.to_string());
        match (self, state) {
            (Function::Count, State::Count(count)) => {
                let count = i64::try_from(*count).map_err(|_| "a count is beyond BIGINT".to_string())?;
                Ok(ScalarValue::Int64(Some(count)))
            }
            (_, State::Sum(0, _)) => null(),
            (Function::Sum, State::Sum(_, sum)) => finish_sum(sum, column, output),
            (Function::Average, State::Sum(count, sum)) => finish_average(sum, *count, column, output),
            (Function::Min, State::Min(value)) | (Function::Max, State::Max(value)) => {
                let column = column.ok_or("an extreme of no column")?;
                let scalar = value::scalar(value, column)?;
                scalar.cast_to(output).map_err(|error| error.to_string())
            }
            (Function::Variance { of_population, root }, State::Variance(moments)) => {
                let variance = if of_population { moments.of_population() } else { moments.of_sample() };
                Ok(ScalarValue::Float64(
                    variance.map(|variance| if root { variance.sqrt() } else { variance }),
                ))
            }
            (Function::Distinct, State::Distinct(distinct)) => {
                Ok(ScalarValue::UInt64(Some(distinct.estimate())))
            }
            (Function::Quantile(share), State::Quantiles(quantiles)) => {
                let scalar = ScalarValue::Float64(quantiles.at(share));
                scalar.cast_to(output).map_err(|error| error.to_string())
            }
            _ => Err(format!(
                "an answer has the state of another function than {}",
                self.asked().as_str_name()
            )),
        }
    }
}

fn scale(column: Option<&DeclaredColumn>) -> u32 {
    column.map_or(0, |column| column.sql_type.scale().into())
}

fn finish_sum(
    sum: &Value,
    column: Option<&DeclaredColumn>,
    output: &DataType,
) -> Result<ScalarValue, String> {
    match (sum, output) {
        (Value::Real(sum), _) => Ok(ScalarValue::Float64(Some(*sum))),
        // DataFusion's sum of BIGINT goes round at its end too.
        (Value::Decimal(sum), DataType::Int64) => Ok(ScalarValue::Int64(Some(*sum as i64))),
        (Value::Decimal(sum), DataType::Float64) => Ok(ScalarValue::Float64(Some(real(*sum, scale(column))))),
        (Value::Decimal(sum), DataType::Decimal128(digits, wanted)) => {
            decimal(*sum, 1, scale(column), *digits, *wanted)
        }
        _ => Err(format!("a sum cannot be shown as {output}")),
    }
}

fn finish_average(
    sum: &Value,
    count: u64,
    column: Option<&DeclaredColumn>,
    output: &DataType,
) -> Result<ScalarValue, String> {
    match (sum, output) {
        (Value::Real(sum), _) => Ok(ScalarValue::Float64(Some(sum / count as f64))),
        (Value::Decimal(sum), DataType::Float64) => {
            Ok(ScalarValue::Float64(Some(real(*sum, scale(column)) / count as f64)))
        }
        (Value::Decimal(sum), DataType::Decimal128(digits, wanted)) => {
            decimal(*sum, count, scale(column), *digits, *wanted)
        }
        _ => Err(format!("a mean cannot be shown as {output}")),
    }
}

fn real(unscaled: i128, scale: u32) -> f64 {
    unscaled as f64 / 10_f64.powi(scale.cast_signed())
}

/// `unscaled / count` with another scale; digits beyond it are cut off, as DataFusion does it.
fn decimal(unscaled: i128, count: u64, scale: u32, digits: u8, wanted: i8) -> Result<ScalarValue, String> {
    let beyond = || format!("a result has more digits than DECIMAL({digits},{wanted})");
    let more = u32::from(wanted.unsigned_abs()).checked_sub(scale).ok_or_else(beyond)?;
    let raised =
        10_i128.checked_pow(more).and_then(|factor| unscaled.checked_mul(factor)).ok_or_else(beyond)?;
    let result = raised / i128::from(count);
    match result.unsigned_abs() < 10_u128.pow(digits.into()) {
        true => Ok(ScalarValue::Decimal128(Some(result), digits, wanted)),
        false => Err(beyond()),
    }
}

impl Pushed {
    /// For EXPLAIN.
    pub fn shown(&self, declaration: &Declaration) -> String {
        let name = match self.function {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Min => "min",
            Function::Max => "max",
            Function::Average => "avg",
            Function::Variance { of_population: false, root: false } => "var_samp",
            Function::Variance { of_population: true, root: false } => "var_pop",
            Function::Variance { of_population: false, root: true } => "stddev_samp",
            Function::Variance { of_population: true, root: true } => "stddev_pop",
            Function::Distinct => "approx_distinct",
            Function::Quantile(_) => "approx_percentile",
        };
        let of = self.column.map_or("*", |column| &declaration.columns[column].name);
        let mut text = format!("{name}({of}");
        if let Function::Quantile(share) = self.function {
            // A String takes all that is written.
            let _ = write!(text, ", {share}");
        }
        text + ")"
    }
}
