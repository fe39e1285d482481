//! The macro that declares options: one entry makes the field, its parser, its place in `/conf` and its documentation.

/// What is known of an option without a configuration.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Heading it stands under.
    pub section: &'static str,
    /// The key, HBase's where HBase has one.
    pub key: &'static str,
    /// Older keys that mean the same.
    pub aliases: &'static [&'static str],
    /// The value if none is given.
    pub default: &'static str,
    /// What a value looks like.
    pub form: &'static str,
    /// Whether a running server takes a change.
    pub reload: bool,
    /// What it is, and what moving it does; lines as written.
    pub doc: &'static [&'static str],
}

/// Declares the options of [`Config`](super::Config).
///
/// `field: Type = "key" | "older key", "default", form;` with a documentation comment, in sections. `form` is a
/// function of the module `value` with a constant `form::FORM` beside it. `reload` behind the form says that a running
/// server takes a change.
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
        /// The options in force. Each field is one option; [`OPTIONS`] tells their keys and defaults.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(
                $(#[doc = $doc])+
                pub $field: $type,
            )+)+
            pub(super) settings: Vec<Setting>,
            pub(super) warnings: Vec<String>,
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
            // Takes each option out of what was read, and parses it.
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
                })
            }
        }
    };
}

pub(super) use options;
