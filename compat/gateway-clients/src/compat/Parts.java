package compat;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.runners.BlockJUnit4ClassRunner;
import org.junit.runners.model.FrameworkMethod;
import org.junit.runners.model.InitializationError;

/**
 * Runs a class whose test `testAll` calls many methods `doTest...`: here each of these methods is a test
 * of its own, so that those about the inside of HBase's server can be excluded.
 */
final class Parts extends BlockJUnit4ClassRunner {
  Parts(Class<?> tests) throws InitializationError {
    super(tests);
  }

  static boolean hasParts(Class<?> tests) {
    return parts(tests).findAny().isPresent();
  }

  @Override
  protected List<FrameworkMethod> computeTestMethods() {
    List<FrameworkMethod> methods = new ArrayList<>(super.computeTestMethods());
    parts(getTestClass().getJavaClass()).sorted(Comparator.comparing(Method::getName))
        .map(FrameworkMethod::new).forEach(methods::add);
    return methods;
  }

  private static Stream<Method> parts(Class<?> tests) {
    return Stream.of(tests.getMethods())
        .filter(method -> method.getName().startsWith("doTest") && method.getParameterCount() == 0);
  }
}
