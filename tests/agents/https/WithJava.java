import java.net.URI;
import java.net.http.*;

/** Java's own client: HTTP/2 where the host offers it. */
public class WithJava {
    public static void main(String[] words) throws Exception {
        HttpRequest asked = HttpRequest.newBuilder(URI.create("https://api.example.com/items/1")).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(asked, HttpResponse.BodyHandlers.ofString());
        if (answer.version() != HttpClient.Version.HTTP_2) throw new AssertionError(answer.version());
        System.out.println(answer.body());
    }
}
