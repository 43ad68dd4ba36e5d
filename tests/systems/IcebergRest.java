import jakarta.servlet.http.HttpServlet;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Iceberg's REST catalog on 127.0.0.1, over a database of SQLite; prints its port. Arguments: warehouse, database. */
public class IcebergRest {
    public static void main(String[] arguments) throws Exception {
        JdbcCatalog catalog = new JdbcCatalog();
        catalog.setConf(new Configuration());
        catalog.initialize("behind", Map.of(
            "warehouse", arguments[0], "uri", "jdbc:sqlite:" + arguments[1], "jdbc.schema-version", "V1"));
        HttpServlet servlet = new RESTCatalogServlet(new RESTCatalogAdapter(catalog));
        ServletContextHandler handler = new ServletContextHandler();
        handler.addServlet(new ServletHolder(servlet), "/*");
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(handler);
        server.start();
        System.out.println(connector.getLocalPort());
        server.join();
    }
}
