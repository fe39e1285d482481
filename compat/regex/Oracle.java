import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Results of java.util.regex for random patterns, each with random values, from a seed. One JSON
 * object per line: {"p": pattern, "f": flags, "v": [values], "r": results}. The results have one
 * character per value: 1 found, 0 not found, ? aborted because Java takes too long or fails by its
 * own bug. Without "v": a syntax error.
 *
 * <p>Usage: Oracle SEED PATTERNS VALUES
 */
public class Oracle {
    /** Characters that Java may read before a search is aborted. */
    private static final long READS_MAX = 1_000_000;

    private final Random random;

    private Oracle(long seed) {
        random = new Random(seed);
    }

    public static void main(String[] args) {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        Oracle oracle = new Oracle(Long.parseLong(args[0]));
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            out.println(oracle.line(Integer.parseInt(args[2])));
        }
        out.flush();
    }

    private String line(int values) {
        Patterns patterns = new Patterns(random);
        String source = patterns.source();
        int flags = patterns.flags();
        String head = "{\"p\":" + json(source) + ",\"f\":" + flags;
        Pattern pattern;
        try {
            pattern = Pattern.compile(source, flags);
        } catch (PatternSyntaxException e) {
            return head + "}";
        } catch (RuntimeException | StackOverflowError e) {
            // A bug of Java's parser.
            return head + "}";
        }
        List<String> texts = new ArrayList<>();
        StringBuilder results = new StringBuilder();
        for (int i = 0; i < values; i++) {
            String text = patterns.value();
            char result = find(pattern, text);
            if (result == 'x') {
                return head + "}";
            }
            texts.add(json(text));
            results.append(result);
        }
        return head + ",\"v\":[" + String.join(",", texts) + "],\"r\":\"" + results + "\"}";
    }

    private static char find(Pattern pattern, String text) {
        try {
            return pattern.matcher(new Counted(text, new long[1])).find() ? '1' : '0';
        } catch (TooLong | StackOverflowError e) {
            return '?';
        } catch (NullPointerException e) {
            // A bug of Java: it accepts some intersections of classes that it cannot match.
            return 'x';
        } catch (IndexOutOfBoundsException e) {
            // Another bug: it searches for grapheme clusters beyond the end.
            return '?';
        }
    }

    private static String json(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private static final class TooLong extends RuntimeException {
        TooLong() {
            super(null, null, false, false);
        }
    }

    /** A text that can be read only a limited number of times. */
    private record Counted(CharSequence text, long[] reads) implements CharSequence {
        @Override
        public int length() {
            return text.length();
        }

        @Override
        public char charAt(int at) {
            if (++reads[0] > READS_MAX) {
                throw new TooLong();
            }
            return text.charAt(at);
        }

        @Override
        public CharSequence subSequence(int from, int to) {
            return new Counted(text.subSequence(from, to), reads);
        }

        @Override
        public String toString() {
            return text.toString();
        }
    }

    /** Random patterns of Java's grammar, and values that are likely to match the last one. */
    private static final class Patterns {
        private static final String[] CHARS = {
            "a", "a", "a", "b", "b", "b", "c", "c", "d", "A", "B", "C", "1", "2", "_", "-", " ", "x", "k", "K", "s", "S", "i", "I",
            "\u00e9", "\u00c9", "\u00df", "\u1e9e", "\u0130", "\u0131", "\u212a", "\u017f", "\u03c3", "\u03c2", "\u03a3", "\u00b5",
            "\u00ff", "\u0178", "\ud83d\ude00", "\ud835\udc9c", "\ud801\udc00", "\ud801\udc28", "\u0301", "\n", "\r", "\r\n", "\u0085",
            "\u2028", "\t", "\u00a0", "\u0663", "\u1100", "\u1161", "\uac00", "\u200d", "\u2764", "\ud83c\udde9", "\ud83c\uddea", "\ufffd",
            "\u4e00", "\u0915", "\u094d",
        };
        private static final String[] CLASSES = {
            "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\h", "\\H", "\\v", "\\V", ".", ".", ".", "\\p{L}", "\\P{L}", "\\pN", "\\PN",
            "\\p{Lu}", "\\p{Ll}", "\\P{Lu}", "\\p{IsAlphabetic}", "\\p{IsLatin}", "\\p{IsGreek}", "\\p{InGreek}", "\\p{javaLowerCase}",
            "\\p{javaUpperCase}", "\\p{Upper}", "\\p{Lower}", "\\p{Alpha}", "\\p{Alnum}", "\\p{Punct}", "\\p{Space}", "\\p{Blank}",
            "\\p{Cntrl}", "\\p{XDigit}", "\\p{ASCII}", "\\p{Graph}", "\\p{Print}", "\\p{script=Han}", "\\p{sc=Latn}", "\\p{blk=Greek}",
            "\\p{gc=Lu}", "\\p{general_category=Nd}", "\\p{IsL}", "\\p{IsWhite_Space}", "\\p{IsDigit}", "\\p{IsUppercase}", "\\p{LC}",
            "\\p{InLatin-1Supplement}", "\\p{IsEmoji}", "\\p{all}", "\\p{L1}", "\\p{So}", "\\P{So}", "\\p{Mn}", "\\p{Cs}", "\\p{Cn}",
        };
        private static final String[] ESCAPES = {
            "\\t", "\\n", "\\r", "\\f", "\\a", "\\e", "\\x61", "\\x{61}", "\\x{1F600}", "\\u0062", "\\ud83d\\ude00", "\\ud83d", "\\0141", "\\07",
            "\\cA", "\\\\", "\\.", "\\*", "\\-", "\\ ", "\\N{LATIN SMALL LETTER A}", "\\N{LINE FEED (LF)}", "\\N{GRINNING FACE}", "\\u00e9",
        };
        private static final String[] ANCHORS = {
            "^", "^", "^", "$", "$", "$", "\\b", "\\b", "\\B", "\\A", "\\Z", "\\z", "\\G", "\\b{g}",
        };
        private static final String[] QUANTIFIERS = {
            "*", "*", "+", "+", "?", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "{0}", "{0,3}", "{1,}", "{3}",
        };
        private static final String FLAGS = "imsxdu";

        private final Random random;
        private final List<String> names = new ArrayList<>();
        private int groups;
        // Strings that match parts of the pattern, in order.
        private final List<String> samples = new ArrayList<>();
        private boolean comments;

        Patterns(Random random) {
            this.random = random;
        }

        private boolean chance(int percent) {
            return random.nextInt(100) < percent;
        }

        private String of(String[] choices) {
            return choices[random.nextInt(choices.length)];
        }

        int flags() {
            if (chance(40)) {
                return Pattern.DOTALL;
            }
            if (chance(40)) {
                return 0;
            }
            int flags = 0;
            for (int flag : new int[] {Pattern.UNIX_LINES, Pattern.CASE_INSENSITIVE, Pattern.CASE_INSENSITIVE, Pattern.MULTILINE,
                Pattern.MULTILINE, Pattern.DOTALL, Pattern.UNICODE_CASE, Pattern.UNICODE_CASE}) {
                flags |= chance(25) ? flag : 0;
            }
            flags |= chance(5) ? Pattern.COMMENTS : 0;
            flags |= chance(8) ? Pattern.UNICODE_CHARACTER_CLASS : 0;
            flags |= chance(2) ? Pattern.LITERAL : 0;
            return flags;
        }

        String source() {
            StringBuilder out = new StringBuilder();
            if (chance(12)) {
                out.append("(?").append(chance(20) ? "U" : FLAGS.charAt(random.nextInt(FLAGS.length()))).append(')');
            }
            alternatives(out, 3);
            if (chance(4)) {
                // An unusual construct.
                int at = random.nextInt(out.length() + 1);
                if (chance(50) || out.length() == 0) {
                    out.insert(at, "()[]{}*+?|\\^$.-&#:=!<>,0".charAt(random.nextInt(24)));
                } else {
                    out.deleteCharAt(Math.min(at, out.length() - 1));
                }
            }
            // A lone surrogate is not text that could be sent.
            return new String(out.toString().getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
        }

        private void alternatives(StringBuilder out, int depth) {
            sequence(out, depth);
            while (chance(22)) {
                out.append('|');
                sequence(out, depth);
            }
        }

        private void sequence(StringBuilder out, int depth) {
            int parts = random.nextInt(depth == 3 ? 5 : 4) + (chance(10) ? 0 : 1);
            for (int i = 0; i < parts; i++) {
                part(out, depth);
            }
        }

        private void part(StringBuilder out, int depth) {
            int kind = random.nextInt(100);
            if (kind < 40 || depth == 0 && kind >= 78) {
                literal(out);
            } else if (kind < 50) {
                out.append(of(CLASSES));
                samples.add(of(CHARS));
            } else if (kind < 60) {
                bracket(out, 2);
                samples.add(of(CHARS));
            } else if (kind < 67) {
                out.append(of(ANCHORS));
                if (chance(92)) {
                    return;
                }
            } else if (kind < 70) {
                out.append(chance(50) ? "\\R" : "\\X");
                samples.add(chance(50) ? "\r\n" : "e\u0301");
            } else if (kind < 74 && groups > 0) {
                out.append('\\').append(1 + random.nextInt(groups + (chance(10) ? 1 : 0)));
                if (!samples.isEmpty()) {
                    samples.add(samples.get(random.nextInt(samples.size())));
                }
            } else if (kind < 75 && !names.isEmpty()) {
                out.append("\\k<").append(names.get(random.nextInt(names.size()))).append('>');
            } else if (kind < 77) {
                out.append("\\Q").append(of(CHARS)).append(chance(30) ? "*" : "").append(of(CHARS)).append("\\E");
            } else if (kind < 78) {
                out.append("(?").append(FLAGS.charAt(random.nextInt(FLAGS.length())));
                out.append(chance(20) ? "-" + FLAGS.charAt(random.nextInt(FLAGS.length())) : "").append(')');
                return;
            } else {
                group(out, depth);
            }
            if (chance(38)) {
                quantifier(out);
            }
            if (chance(2)) {
                out.append(chance(50) ? " " : "#x\n");
            }
        }

        private void quantifier(StringBuilder out) {
            out.append(of(QUANTIFIERS));
            int greed = random.nextInt(10);
            out.append(greed < 2 ? "?" : greed < 4 ? "+" : "");
            if (!samples.isEmpty() && chance(50)) {
                samples.add(samples.get(samples.size() - 1));
            }
        }

        private void literal(StringBuilder out) {
            if (chance(12)) {
                out.append(of(ESCAPES));
                samples.add(of(CHARS));
                return;
            }
            for (int i = chance(25) ? 2 : 1; i > 0; i--) {
                String text = of(CHARS);
                out.append(text);
                samples.add(text);
            }
        }

        private void group(StringBuilder out, int depth) {
            int kind = random.nextInt(100);
            if (kind < 38) {
                groups++;
                out.append('(');
            } else if (kind < 42) {
                String name = "n" + groups++;
                names.add(name);
                out.append("(?<").append(name).append('>');
            } else if (kind < 60) {
                out.append("(?:");
            } else if (kind < 65) {
                out.append("(?").append(FLAGS.charAt(random.nextInt(FLAGS.length()))).append(':');
            } else if (kind < 72) {
                out.append("(?>");
            } else if (kind < 80) {
                out.append("(?=");
            } else if (kind < 88) {
                out.append("(?!");
            } else if (kind < 94) {
                out.append("(?<=");
            } else {
                out.append("(?<!");
            }
            alternatives(out, depth - 1);
            out.append(')');
        }

        private void bracket(StringBuilder out, int depth) {
            out.append('[').append(chance(30) ? "^" : "");
            int parts = 1 + random.nextInt(3);
            for (int i = 0; i < parts; i++) {
                int kind = random.nextInt(100);
                if (kind < 45) {
                    out.append(of(CHARS));
                } else if (kind < 60) {
                    String[] ranges = {"a-c", "A-C", "a-z", "0-9", "\u00e0-\u00ff", "\u0391-\u03c9", "\\x{1F600}-\\x{1F64F}", "J-L", "\\t-\\v", "!-~"};
                    out.append(of(ranges));
                } else if (kind < 72) {
                    String text = of(CLASSES);
                    out.append(text.equals(".") ? "." : text);
                } else if (kind < 78) {
                    out.append(of(ESCAPES));
                } else if (kind < 80) {
                    out.append("\\Q").append(of(CHARS)).append("]\\E");
                } else if (kind < 90 && depth > 0) {
                    bracket(out, depth - 1);
                } else {
                    out.append("&&");
                    if (depth > 0 && chance(60)) {
                        bracket(out, depth - 1);
                    } else {
                        out.append(of(CHARS));
                    }
                }
            }
            out.append(']');
        }

        /**
         * A value: strings that match the pattern's parts, some omitted or added, or any string.
         */
        String value() {
            StringBuilder out = new StringBuilder();
            if (chance(70) && !samples.isEmpty()) {
                int from = chance(50) ? 0 : random.nextInt(samples.size());
                for (int at = from; at < samples.size() && out.length() < 24; at++) {
                    if (chance(85)) {
                        out.append(samples.get(at));
                    }
                    if (chance(12)) {
                        out.append(of(CHARS));
                    }
                }
                if (chance(15)) {
                    out.append(of(new String[] {"\n", "\r\n", "\r", "\u0085"}));
                }
            } else {
                for (int length = random.nextInt(12); length > 0; length--) {
                    out.append(chance(50) ? "abcABC".substring(random.nextInt(6)).substring(0, 1) : of(CHARS));
                }
            }
            return new String(out.toString().getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8).replace('?', 'q');
        }
    }
}
