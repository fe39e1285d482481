//! SQL functions that the endpoint supports, and the conversion of its states to their values.

use std::fmt::Write;

use columnar::{State, Value};
use datafusion::arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use proto::grampus::aggregate::Function as EndpointFunction;

use crate::declaration::{Declaration, DeclaredColumn};
use crate::value;

/// An aggregate that a query pushes down.
#[derive(Debug, Clone, PartialEq)]
pub struct PushedAggregate {
    /// The function.
    pub function: Function,
    /// The declared column that it aggregates; `None` counts rows.
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
        /// Population variance rather than sample variance.
        is_population: bool,
        /// Whether to take the square root: the standard deviation.
        root: bool,
    },
    /// `approx_distinct`.
    Distinct,
    /// `approx_percentile_cont`, `approx_median`, with the fraction of the quantile.
    Quantile(f64),
}

impl Function {
    /// The function with this name in DataFusion. The caller sets the fraction of a quantile.
    pub fn from_name(name: &str) -> Option<Function> {
        let variance = |is_population, root| Function::Variance { is_population, root };
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

    /// The endpoint's function that this one requires.
    pub fn endpoint_function(self) -> EndpointFunction {
        match self {
            Function::Count => EndpointFunction::Count,
            Function::Sum => EndpointFunction::Sum,
            Function::Min => EndpointFunction::Min,
            Function::Max => EndpointFunction::Max,
            Function::Average => EndpointFunction::Average,
            Function::Variance { .. } => EndpointFunction::Variance,
            Function::Distinct => EndpointFunction::Distinct,
            Function::Quantile(_) => EndpointFunction::Quantiles,
        }
    }

    /// The value of a state, in a type that can be cast to `output` without loss.
    ///
    /// # Errors
    /// A message: the value does not fit the type, or the state belongs to another function.
    pub fn finish(
        self,
        state: &State,
        column: Option<&DeclaredColumn>,
        output: &DataType,
    ) -> Result<ScalarValue, String> {
        let null = || ScalarValue::try_from(output).map_err(|error| error.to_string());
        match (self, state) {
            (Function::Count, State::Count(count)) => {
                let count = i64::try_from(*count).map_err(|_| "count exceeds BIGINT".to_string())?;
                Ok(ScalarValue::Int64(Some(count)))
            }
            (_, State::Sum(0, _)) => null(),
            (Function::Sum, State::Sum(_, sum)) => finish_sum(sum, column, output),
            (Function::Average, State::Sum(count, sum)) => finish_average(sum, *count, column, output),
            (Function::Min, State::Min(value)) | (Function::Max, State::Max(value)) => {
                let column = column.ok_or("MIN or MAX without a column")?;
                let scalar = value::scalar(value, column)?;
                scalar.cast_to(output).map_err(|error| error.to_string())
            }
            (Function::Variance { is_population, root }, State::Variance(moments)) => {
                let variance =
                    if is_population { moments.population_variance() } else { moments.sample_variance() };
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
                "response has the state of a function other than {}",
                self.endpoint_function().as_str_name()
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
        // DataFusion's sum of BIGINT wraps around too.
        (Value::Decimal(sum), DataType::Int64) => Ok(ScalarValue::Int64(Some(*sum as i64))),
        (Value::Decimal(sum), DataType::Float64) => Ok(ScalarValue::Float64(Some(real(*sum, scale(column))))),
        (Value::Decimal(sum), DataType::Decimal128(digits, output_scale)) => {
            decimal(*sum, 1, scale(column), *digits, *output_scale)
        }
        _ => Err(format!("cannot convert a sum to {output}")),
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
        (Value::Decimal(sum), DataType::Decimal128(digits, output_scale)) => {
            decimal(*sum, count, scale(column), *digits, *output_scale)
        }
        _ => Err(format!("cannot convert an average to {output}")),
    }
}

fn real(unscaled: i128, scale: u32) -> f64 {
    unscaled as f64 / 10_f64.powi(scale.cast_signed())
}

/// `unscaled / count` in another scale; further digits are truncated, as in DataFusion.
fn decimal(
    unscaled: i128,
    count: u64,
    scale: u32,
    digits: u8,
    output_scale: i8,
) -> Result<ScalarValue, String> {
    let overflow = || format!("result has more digits than DECIMAL({digits},{output_scale})");
    let factor_digits = u32::from(output_scale.unsigned_abs()).checked_sub(scale).ok_or_else(overflow)?;
    let scaled = 10_i128
        .checked_pow(factor_digits)
        .and_then(|factor| unscaled.checked_mul(factor))
        .ok_or_else(overflow)?;
    let result = scaled / i128::from(count);
    match result.unsigned_abs() < 10_u128.pow(digits.into()) {
        true => Ok(ScalarValue::Decimal128(Some(result), digits, output_scale)),
        false => Err(overflow()),
    }
}

impl PushedAggregate {
    /// The aggregate as EXPLAIN shows it.
    pub fn explain(&self, declaration: &Declaration) -> String {
        let name = match self.function {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Min => "min",
            Function::Max => "max",
            Function::Average => "avg",
            Function::Variance { is_population: false, root: false } => "var_samp",
            Function::Variance { is_population: true, root: false } => "var_pop",
            Function::Variance { is_population: false, root: true } => "stddev_samp",
            Function::Variance { is_population: true, root: true } => "stddev_pop",
            Function::Distinct => "approx_distinct",
            Function::Quantile(_) => "approx_percentile",
        };
        let of = self.column.map_or("*", |column| &declaration.columns[column].name);
        let mut text = format!("{name}({of}");
        if let Function::Quantile(share) = self.function {
            // Writing to a String cannot fail.
            let _ = write!(text, ", {share}");
        }
        text + ")"
    }
}
