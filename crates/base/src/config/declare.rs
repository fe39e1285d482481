//! The macro that declares options. One entry defines the field, its parser, its entry in `/conf`
//! and its documentation.

/// Static description of an option.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Heading in the documentation.
    pub section: &'static str,
    /// The key; HBase's where HBase has one.
    pub key: &'static str,
    /// Older keys with the same meaning.
    pub aliases: &'static [&'static str],
    /// Default value as text.
    pub default: &'static str,
    /// Description of valid values.
    pub form: &'static str,
    /// Whether the option can be changed while the server runs.
    pub reload: bool,
    /// Documentation: purpose and effect of larger and smaller values; lines as written.
    pub doc: &'static [&'static str],
}

/// Declares the options of [`Config`](super::Config).
///
/// `field: Type = "key" | "older key", "default", form;` with a doc comment, in sections. `form` is
/// a submodule of `value` with a constant `FORM` and a function `parse`. `reload` after the form
/// marks an option that can be changed while the server runs.
macro_rules! options {
    ($(
        $section:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty = $key:literal $(| $alias:literal)*, $default:literal, $form:ident
                $(, $reload:ident)?;
            )+
        }
    )+) => {
        /// The effective options, one per field. [`OPTIONS`] has their keys and defaults.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(
                $(#[doc = $doc])+
                pub $field: $type,
            )+)+
            pub(super) settings: Vec<Setting>,
            pub(super) warnings: Vec<String>,
            pub(super) hadoop: $crate::config::HadoopSettings,
            pub(super) hadoop_user: String,
        }

        /// Every option, in the order of the documentation.
        pub static OPTIONS: &[OptionInfo] = &[$($(
            OptionInfo {
                section: $section,
                key: $key,
                aliases: &[$($alias),*],
                default: $default,
                form: value::$form::FORM,
                reload: !stringify!($($reload)?).is_empty(),
                doc: &[$($doc),+],
            },
        )+)+];

        impl Config {
            // Looks up and parses each option.
            pub(super) fn parse(layers: &Layers) -> Result<Config, Error> {
                let mut settings = Vec::with_capacity(OPTIONS.len());
                Ok(Config {
                    $($(
                        $field: {
                            let setting = layers.setting($key, $default)?;
                            let parsed = value::$form::parse(&setting.text);
                            let parsed = parsed.map_err(|reason| setting.refused(reason))?;
                            settings.push(setting);
                            parsed
                        },
                    )+)+
                    settings,
                    warnings: Vec::new(),
                    hadoop: Default::default(),
                    hadoop_user: String::new(),
                })
            }
        }
    };
}

pub(super) use options;
